//! What happens to a signed transaction: printed, simulated, or sent and waited for.

use std::time::Duration;

use node::clock::now_ms;
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};
use types::{Body, Hash};
use wallet::client::records::{Status, TransactionStatus};
use wallet::{Answer, Client, Envelope, Signed};

use super::{SendArgs, Sender};
use crate::client::output::{ombra_of, printable};
use crate::client::{CliError, Interrupts, Out, Outcome};

/// A transaction in its block.
pub(crate) type Included = Answer<TransactionStatus>;

impl Sender {
    /// Signs with the next nonce and sends; answers when the transaction is in a block.
    pub(crate) async fn include(
        &self,
        body: &Body,
        timeout: Duration,
    ) -> Result<Included, CliError> {
        let envelope = self.envelope(now_ms()).await?;
        let signed = Signed::new(self.keypair(), &envelope, body);
        self.include_signed(&signed, timeout).await
    }

    /// Sends and answers when the transaction is in a block. While the node is away or busy the same
    /// bytes are sent again; every failure names the hash.
    pub(crate) async fn include_signed(
        &self,
        signed: &Signed,
        timeout: Duration,
    ) -> Result<Included, CliError> {
        let answer = self.client.send_and_wait(signed, timeout).await.map_err(CliError::from);
        let outcome = answer.and_then(|answer| included(answer, timeout));
        outcome.map_err(|error| error.after_signing(&signed.hash()))
    }

    /// Sends without waiting for a block.
    async fn send(&self, signed: &Signed, patience: Duration) -> Result<Hash, CliError> {
        let sent = self.client.send_again(signed, patience).await.map_err(CliError::from);
        sent.map_err(|error| error.after_signing(&signed.hash()))
    }
}

/// The inclusion of a transaction, or why there is none.
fn included(answer: Included, timeout: Duration) -> Result<Included, CliError> {
    match (answer.status, &answer.dropped) {
        (Status::Included, _) => Ok(answer),
        (Status::Dropped, Some(dropped)) => {
            Err(CliError::Rejected { code: dropped.code.clone(), message: dropped.message.clone() })
        }
        (Status::Dropped, None) => Err(CliError::Failed("it was dropped".to_owned())),
        (Status::Pending, _) => {
            Err(CliError::Failed(format!("it is still pending after {} s", timeout.as_secs())))
        }
    }
}

/// A command's transactions: opened from its options.
pub(super) struct Delivery {
    pub(super) sender: Sender,
    args: SendArgs,
    /// Listened for from the first transaction on that is sent.
    interrupts: OnceCell<Mutex<Interrupts>>,
}

impl Delivery {
    /// Opens the key; the node is not asked yet.
    pub(super) fn open(args: SendArgs) -> Result<Self, CliError> {
        let sender = Sender::new(args.node.client()?, args.signer.signer()?);
        Ok(Self { sender, args, interrupts: OnceCell::new() })
    }

    pub(super) fn client(&self) -> &Client {
        &self.sender.client
    }

    /// The next nonce, the time and the chain, as far as the command line does not say them.
    pub(super) async fn envelope(&self) -> Result<Envelope, CliError> {
        let given = &self.args.envelope;
        let timestamp = given.timestamp.unwrap_or_else(now_ms);
        if let Some(nonce) = given.nonce.filter(|_| self.args.print) {
            let chain_id = Some(self.sender.signer().chain_id_offline()?);
            let bid = given.bid();
            return Ok(Envelope { bid, ..Envelope::new(nonce, timestamp, chain_id) });
        }
        let mut envelope = self.sender.envelope(timestamp).await?;
        envelope.bid = given.bid();
        envelope.nonce = given.nonce.unwrap_or(envelope.nonce);
        Ok(envelope)
    }

    /// Signs a body and does with it what the options say.
    pub(super) async fn deliver(&self, body: &Body, out: Out<'_>) -> Outcome {
        let envelope = self.envelope().await?;
        self.deliver_with(&envelope, body, out).await
    }

    /// The same with an envelope that the body depends on.
    pub(super) async fn deliver_with(
        &self,
        envelope: &Envelope,
        body: &Body,
        out: Out<'_>,
    ) -> Outcome {
        if let (Body::Transfer(_), Some(tip)) = (body, envelope.bid.tip) {
            return Err(CliError::Usage(format!(
                "--tip is {tip}, expected none: a transfer's tip is its --fee"
            )));
        }
        let signed = Signed::new(self.sender.keypair(), envelope, body);
        self.deliver_signed(body.type_name(), &signed, out).await
    }

    /// The same with a transaction that is signed already.
    pub(super) async fn deliver_signed(
        &self,
        kind: &str,
        signed: &Signed,
        out: Out<'_>,
    ) -> Outcome {
        if self.args.print {
            writeln!(out, "{}", signed.text())?;
        } else if self.args.dry_run {
            self.simulate(signed, out).await?;
        } else if self.args.wait.no_wait {
            self.announce(kind, signed, out).await?;
            let sending = self.sender.send(signed, self.timeout());
            let hash = self.unless_interrupted(signed, sending).await?;
            self.print_sent(&hash, out).await?;
        } else {
            self.announce(kind, signed, out).await?;
            let included = self.include(signed).await?;
            self.print_included(&included, out).await?;
        }
        Ok(())
    }

    /// Sends a transaction and answers when it is in a block, until ctrl-C.
    pub(super) async fn include(&self, signed: &Signed) -> Result<Included, CliError> {
        let sending = self.sender.include_signed(signed, self.timeout());
        self.unless_interrupted(signed, sending).await
    }

    /// What the sending of a transaction answers; after ctrl-C a failure that names the hash, as after any
    /// other end of which nobody knows whether the node has it.
    async fn unless_interrupted<T>(
        &self,
        signed: &Signed,
        sending: impl Future<Output = Result<T, CliError>>,
    ) -> Result<T, CliError> {
        let sent = self.interrupts().await?.lock().await.unless(sending).await;
        sent.unwrap_or_else(|| {
            Err(CliError::Failed("interrupted".to_owned()).after_signing(&signed.hash()))
        })
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs(self.args.wait.timeout)
    }

    pub(super) fn sends(&self) -> bool {
        !self.args.print && !self.args.dry_run
    }

    /// Whether a node is asked anything: only what is printed with a nonce that is given can do without.
    pub(super) const fn asks_node(&self) -> bool {
        !(self.args.print && self.args.envelope.nonce.is_some())
    }

    pub(super) fn simulates(&self) -> bool {
        self.args.dry_run
    }

    pub(super) fn prints_json(&self) -> bool {
        self.args.node.json
    }

    /// The ctrl-Cs since the first transaction that was sent.
    async fn interrupts(&self) -> Result<&Mutex<Interrupts>, CliError> {
        let listen = || async { Interrupts::listen().map(Mutex::new) };
        self.interrupts.get_or_try_init(listen).await
    }

    /// Says what is about to be sent: whoever does not wait for the end knows what to ask for.
    async fn announce(&self, kind: &str, signed: &Signed, out: Out<'_>) -> Outcome {
        self.interrupts().await?;
        if !self.prints_json() {
            writeln!(out, "{kind} {}", signed.hash())?;
            out.flush()?;
        }
        Ok(())
    }

    async fn print_sent(&self, hash: &Hash, out: Out<'_>) -> Outcome {
        if self.prints_json() {
            writeln!(out, "{}", json!({ "hash": hash }))?;
        } else {
            writeln!(out, "  accepted by the pool, not waited for")?;
            writeln!(out, "  chain {}", self.sender.chain().await?)?;
        }
        Ok(())
    }

    async fn print_included(&self, included: &Included, out: Out<'_>) -> Outcome {
        if self.prints_json() {
            writeln!(out, "{included}")?;
        } else {
            writeln!(out, "  in block {}", block_of(included))?;
            writeln!(out, "  chain {}", self.sender.chain().await?)?;
        }
        Ok(())
    }

    /// Prints what the transaction would do; that the chain would refuse it is a rejection.
    async fn simulate(&self, signed: &Signed, out: Out<'_>) -> Outcome {
        let answer = self.client().simulate(signed.json()).await?;
        if self.prints_json() {
            writeln!(out, "{answer}")?;
        } else if answer["valid"] == json!(true) {
            print_effects(&answer["effects"], out)?;
        }
        rejection_of(&answer).map_or(Ok(()), Err)
    }
}

/// What the chain would say against a transaction that was simulated; nothing if it is valid.
pub(crate) fn rejection_of(simulated: &Value) -> Option<CliError> {
    if simulated["valid"] == json!(true) {
        return None;
    }
    let error = &simulated["error"];
    let code = error["data"]["code"].as_str().unwrap_or("REFUSED").to_owned();
    let message = printable(error["message"].as_str().unwrap_or("no reason given"));
    Some(CliError::Rejected { code, message })
}

/// `12 (hash …)`.
pub(crate) fn block_of(included: &TransactionStatus) -> String {
    match (included.block_index, included.block_hash) {
        (Some(index), Some(hash)) => format!("{index} ({hash})"),
        (Some(index), None) => index.to_string(),
        (None, _) => "-".to_owned(),
    }
}

fn print_effects(effects: &Value, out: Out<'_>) -> Outcome {
    writeln!(out, "valid; nothing was sent. It would do this:")?;
    for (address, balance) in effects["balances"].as_object().into_iter().flatten() {
        let (before, after) = (ombra_of(&balance["before"]), ombra_of(&balance["after"]));
        writeln!(out, "  {} {before} -> {after}", printable(address))?;
    }
    if let Some(status) = effects["run"]["status"].as_str() {
        writeln!(out, "  run {}", printable(status))?;
    }
    writeln!(out, "  burned {}", ombra_of(&effects["burned"]))?;
    Ok(())
}
