//! Starting the engine and the loop, and what is left in the caller's hands.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use malachitebft_app::net::PeerId;
use malachitebft_app::types::Keypair as NodeKeypair;
use malachitebft_app::types::codec::Codec;
use malachitebft_app_channel::{
    AppMsg, Channels, ConsensusContext, EngineHandle, NetworkContext, NetworkIdentity,
    RequestContext, SyncContext, WalContext, start_engine,
};
use malachitebft_signing::Signer as _;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::admission::Admission;
use crate::amnesia::{self, Withheld};
use crate::app::{App, End, Ended, Follows, Setup};
use crate::control::Control;
use crate::engine::codec::{Borsh, NetworkCodec};
use crate::engine::context::Ctx;
use crate::engine::settings::{self, Settings};
use crate::engine::signing::{Signer, Verifier};
use crate::guard::Guard;
use crate::presence::Presence;
use crate::wal_archive;
use crate::wal_file::{FOLLOW_LOG_NAME, LOG_NAME};
use crate::wal_space;
use crate::{Config, ConsensusFault, Counters, Identity, Network, Ports, StartError, Tip};

/// What is said when a validator that followed begins to sign.
const SIGNS_AGAIN: &str = "what this key has signed is decided: from now on the node signs again";
const SIGNS_NOW: &str = "nothing is missing any more: the node signs from now on";

/// What is said when a validator's network is started again.
const UNHEARD: &str = "a node that matters is connected and does not hear this validator: it may not have \
    noticed that it lost its connection; the consensus network is started again";

/// Requests to the engine that may wait. Only operators make them.
const REQUESTS_MAX: usize = 16;

/// How long the engine's actors may take to stop, and its log to be let go.
const STOP_WAIT_MAX: Duration = Duration::from_secs(3);

/// How often is looked whether the log was let go.
const LOCK_POLL: Duration = Duration::from_millis(5);

/// How long a validator may be connected to a node that matters and not be heard by it, before its network
/// is started again. The engine's mesh needs one or two seconds to form.
const UNHEARD_MAX: Duration = Duration::from_secs(5);

/// The same after several vain restarts: each one doubles it up to this. Peers may take minutes to give up
/// connections that are gone, and one that never listens shall not cost a validator more than the second or
/// two of a restart in so long a time.
const UNHEARD_MAX_LATER: Duration = Duration::from_secs(600);

/// A network that was heard for so long was not started in vain.
const HEARD_MIN: Duration = Duration::from_secs(1_800);

/// How long the network of a stopped engine may take to close its port. An engine that shared the port with
/// it would be a stranger to its own connections.
const CLOSE_WAIT_MAX: Duration = Duration::from_secs(30);

/// How long the last engine of this process may take to let go of the log: a slow disk holds it.
const OWN_LOCK_WAIT_MAX: Duration = Duration::from_secs(60);

/// How long others may take to see that a connection was closed, before the same node connects again.
const FAREWELL: Duration = Duration::from_millis(500);

/// Running consensus. Dropping it stops consensus, without waiting for that.
#[derive(Debug)]
pub struct Handle {
    task: JoinHandle<Result<(), ConsensusFault>>,
    stop: CancellationToken,
    counters: Counters,
    control: Control,
}

/// Starts consensus. It goes on until `stop`, the end of the handle, or a fault; then
/// [`Handle::finished`] resolves.
///
/// # Errors
/// [`StartError`] when the directory, the record of signed votes, the addresses, the ledger or
/// the engine cannot be used.
///
/// The future is boxed here, so that the engine is compiled once, in this crate.
pub fn start(
    config: Config,
    identity: Identity,
    ports: Ports,
    stop: CancellationToken,
) -> Pin<Box<dyn Future<Output = Result<Handle, StartError>> + Send>> {
    let may_sign = CancellationToken::new();
    may_sign.cancel();
    Box::pin(launch(config, identity, ports, (may_sign, stop)))
}

/// The same with a validator that follows without signing until `may_sign` is cancelled.
///
/// # Errors
/// As [`start`].
pub fn start_following(
    config: Config,
    identity: Identity,
    ports: Ports,
    may_sign: CancellationToken,
    stop: CancellationToken,
) -> Pin<Box<dyn Future<Output = Result<Handle, StartError>> + Send>> {
    Box::pin(launch(config, identity, ports, (may_sign, stop)))
}

async fn launch(
    config: Config,
    identity: Identity,
    ports: Ports,
    (may_sign, stop): (CancellationToken, CancellationToken),
) -> Result<Handle, StartError> {
    let Identity { node_key, validator } = identity;
    std::fs::create_dir_all(&config.directory)
        .map_err(|source| StartError::Directory { path: config.directory.clone(), source })?;
    let counters = ports.counters.clone();
    let tip = tip(&ports).await?;
    let signer = match validator {
        None => None,
        Some(keypair) => {
            let (domain, key) = (config.domain.now(), keypair.public_key());
            let forgotten = amnesia::without_record(&tip, keypair.address());
            let guard = Guard::open(&config.directory, &domain, &key, forgotten)?;
            let log = config.directory.join(LOG_NAME);
            Some(Signer::new(config.domain.clone(), keypair, guard, log, counters.clone()))
        }
    };
    let stop = stop.child_token();
    let named = settings::named(&config.network)?;
    if matches!(config.network, Network::Peers { open: false, .. }) {
        named.iter().for_each(settings::warn_of_unpinned);
    }
    let control = Control {
        requests: Arc::default(),
        named: Arc::new(Mutex::new(named)),
        peer_id: peer_id(&node_key)?,
        withheld: Withheld::default(),
        punctuality: ports.counters.punctuality.clone(),
    };
    let is_counted = may_sign.clone();
    let base = Base { config, node_key, ports, is_counted, stop: stop.clone(), control };
    let until = base.follow_until(&tip, signer.as_ref()).await?;
    base.control.withheld.set(until);
    if let Some(height) = until {
        base.set_log_aside().await?;
        tell_of_following(height, &tip, signer.as_ref());
    }
    let follows = Follows { until, may_sign };
    let follows = Some(follows).filter(|it| signer.is_some() && !it.is_over(tip.height));
    let signs_now = signer.clone().filter(|_| follows.is_none());
    let first = base.engine(signs_now, tip, follows, (UNHEARD_MAX, STOP_WAIT_MAX)).await?;
    let control = base.control.clone();
    let task = tokio::spawn(base.run(first, signer));
    Ok(Handle { task, stop, counters, control })
}

async fn tip(ports: &Ports) -> Result<Tip, StartError> {
    let ledger = Arc::clone(&ports.ledger);
    tokio::task::spawn_blocking(move || ledger.tip())
        .await
        .map_err(|panic| StartError::Engine(panic.to_string()))?
        .map_err(StartError::Ledger)
}

/// Says that this validator only follows, and whether the others can end that.
fn tell_of_following(height: u64, tip: &Tip, signer: Option<&Signer>) {
    if signer.is_some_and(|signer| signer.last_signed().round < 0) {
        tracing::warn!(
            height,
            tip = tip.height,
            "there was no record of what this key has signed: the node follows without signing until all \
             that it may have signed is decided"
        );
    } else {
        tracing::warn!(
            height,
            tip = tip.height,
            "this key has signed for a height whose log is lost: the node follows without signing \
             until that height is decided"
        );
    }
    if signer.is_some_and(|signer| !tip.validators.is_quorum_without(&signer.address())) {
        tracing::warn!(
            height,
            "the other validators are not a quorum without this one: if no node has that block, \
             the chain has stopped, and docs/operations.md section 8.6 says how to start it again"
        );
    }
}

/// What engines are started with, one after the other.
struct Base {
    config: Config,
    node_key: [u8; 32],
    ports: Ports,
    /// Cancelled when the votes in earlier blocks are counted.
    is_counted: CancellationToken,
    stop: CancellationToken,
    control: Control,
}

/// A started engine.
type Started = (Runner, Channels<Ctx>);

impl Base {
    /// The log of an engine with or without a signer.
    fn log(&self, signer: Option<&Signer>) -> PathBuf {
        let name = if signer.is_some() { LOG_NAME } else { FOLLOW_LOG_NAME };
        self.config.directory.join(name)
    }

    /// Takes a log away that is not of the height that this validator has signed, so that none stands
    /// there when the node starts again before that height is decided.
    async fn set_log_aside(&self) -> Result<(), StartError> {
        let path = self.config.directory.clone();
        let kept = tokio::task::spawn_blocking({
            let path = path.clone();
            move || wal_archive::archive_log(&path)
        });
        let kept = kept.await.map_err(|panic| StartError::Engine(panic.to_string()))?;
        if let Some(kept) = kept.map_err(|source| StartError::Aside { path, source })? {
            tracing::info!(path = %kept.display(), "moved the log of another height aside");
        }
        Ok(())
    }

    /// Until which height this validator must only follow.
    async fn follow_until(
        &self,
        tip: &Tip,
        signer: Option<&Signer>,
    ) -> Result<Option<u64>, StartError> {
        let Some(signer) = signer else { return Ok(None) };
        let (tip, own, signed) = (tip.clone(), signer.address(), signer.last_signed());
        let (archive, log) = (Arc::clone(&self.ports.archive), self.log(Some(signer)));
        tokio::task::spawn_blocking(move || amnesia::withheld(signed, (&tip, own), &*archive, &log))
            .await
            .map_err(|panic| StartError::Engine(panic.to_string()))?
    }

    async fn engine(
        &self,
        signer: Option<Signer>,
        tip: Tip,
        follows: Option<Follows>,
        (unheard_max, lock_wait_max): (Duration, Duration),
    ) -> Result<Started, StartError> {
        let Self { config, node_key, ports, is_counted, stop, control } = self;
        let named = control.named.lock().clone();
        let (settings, log) = (Settings::new(config, named)?, self.log(signer.as_ref()));
        let presence = Presence::default();
        let verifier = Verifier::new(config.domain.clone(), presence.clone())
            .until_counted(is_counted.clone());
        let admission = Admission::default();
        let network_codec =
            NetworkCodec { admission: admission.clone(), verifier: verifier.clone() };
        let node_key = node_keypair(node_key)?;
        let peer_id = node_key.public().to_peer_id();
        let network = network_identity(config, node_key, peer_id, signer.as_ref()).await?;
        if !is_free_within(&log, lock_wait_max).await {
            return Err(StartError::InUse { path: log });
        }
        let voting: Box<dyn malachitebft_signing::Verifier<Ctx>> = Box::new(verifier.clone());
        let consensus = match &signer {
            Some(signer) => ConsensusContext::new_validator(
                signer.address().into(),
                voting,
                Box::new(signer.clone()),
            ),
            None => ConsensusContext::new_full_node(types::Address::default().into(), voting),
        };
        let (channels, engine) = start_engine(
            Ctx,
            settings,
            WalContext::new(log.clone(), Borsh),
            NetworkContext::new(network, network_codec),
            consensus,
            SyncContext::new(Borsh),
            RequestContext::new(REQUESTS_MAX),
        )
        .await
        .map_err(|report| StartError::Engine(format!("{report:#}")))?;
        let listens = signer.is_some() && config.network != Network::Alone;
        let app = App::new(Setup {
            ports: ports.clone(),
            signer: signer.clone(),
            follows,
            unheard_max: listens.then_some(unheard_max),
            verifier,
            admission,
            timeouts: settings::timeouts(&config.timeouts),
            presence,
            publishes: listens,
            network: channels.network.clone(),
            peers: channels.net_requests.clone(),
            counters: ports.counters.clone(),
            block_bytes_max: config.block_bytes_max,
            tip,
        });
        *control.requests.lock() = Some(channels.net_requests.clone());
        Ok((Runner { app, signer, engine, log, listens, stop: stop.clone() }, channels))
    }

    /// Runs engines, one after the other, until the last one's end: one that follows is followed by one
    /// that signs as soon as that is allowed, and one that nobody hears by one with a new network.
    async fn run(self, mut started: Started, signer: Option<Signer>) -> Result<(), ConsensusFault> {
        let failed = |error| ConsensusFault::Start(Box::new(error));
        let mut unheard_max = UNHEARD_MAX;
        loop {
            let (runner, channels) = started;
            let since = Instant::now();
            let end = runner.run(channels).await?;
            match end {
                End::Asked => return Ok(()),
                End::MaySign => {}
                End::Unheard => {
                    unheard_max = next_unheard_max(unheard_max, since.elapsed());
                    self.ports.counters.network_restarts.inc();
                    tracing::warn!("{UNHEARD}");
                }
            }
            let closed = self.stop.run_until_cancelled(left(&self.config.network)).await;
            let Some(closed) = closed else { return Ok(()) };
            closed.map_err(failed)?;
            if end == End::MaySign {
                let again = self.control.withheld.get().is_some();
                tracing::info!("{}", if again { SIGNS_AGAIN } else { SIGNS_NOW });
            }
            let tip = tip(&self.ports).await.map_err(failed)?;
            let waits = (unheard_max, OWN_LOCK_WAIT_MAX);
            let next = Box::pin(self.engine(signer.clone(), tip, None, waits));
            let Some(next) = self.stop.run_until_cancelled(next).await else { return Ok(()) };
            started = next.map_err(failed)?;
            self.control.withheld.set(None);
        }
    }
}

/// How long the next network may be unheard, after one that was started again in its `age`.
fn next_unheard_max(last: Duration, age: Duration) -> Duration {
    if age >= HEARD_MIN { UNHEARD_MAX } else { last.saturating_mul(2).min(UNHEARD_MAX_LATER) }
}

/// The libp2p peer id of a node key, for peer lists.
///
/// # Errors
/// [`StartError::NodeKey`] when the seed gives no key.
pub fn peer_id(node_key: &[u8; 32]) -> Result<String, StartError> {
    node_keypair(node_key).map(|key| key.public().to_peer_id().to_string())
}

fn node_keypair(seed: &[u8; 32]) -> Result<NodeKeypair, StartError> {
    NodeKeypair::ed25519_from_bytes(*seed).map_err(|_unreadable| StartError::NodeKey)
}

async fn network_identity(
    config: &Config,
    node_key: NodeKeypair,
    peer_id: PeerId,
    signer: Option<&Signer>,
) -> Result<NetworkIdentity, StartError> {
    let moniker = config.moniker.clone();
    let Some(signer) = signer else {
        return Ok(NetworkIdentity::new(moniker, node_key, None));
    };
    let proof = signer
        .sign_validator_proof(signer.public_key().as_bytes().to_vec(), peer_id.to_bytes())
        .await
        .map_err(|error| StartError::Engine(error.to_string()))?;
    let proof = Borsh.encode(&proof).map_err(|error| StartError::Engine(error.to_string()))?;
    let address = signer.address().to_string();
    Ok(NetworkIdentity::new_validator(moniker, node_key, address, proof))
}

/// The one task of this crate.
struct Runner {
    app: App,
    signer: Option<Signer>,
    engine: EngineHandle,
    log: PathBuf,
    /// Whether votes of others are watched for.
    listens: bool,
    stop: CancellationToken,
}

impl Runner {
    async fn run(mut self, channels: Channels<Ctx>) -> Result<End, ConsensusFault> {
        let Channels { consensus: mut messages, events, .. } = channels;
        let events = self.listens.then(|| events.subscribe());
        let ended = self.app.run(&mut messages, events, &self.stop).await;
        let outcome = match ended {
            Ok(end) => Ok(end),
            Err(Ended::Fault(fault)) => Err(fault),
            Err(Ended::EngineGone) => Err(self.engine_fault().await),
        };
        if let Err(fault) = &outcome {
            tracing::error!(%fault, "consensus is stopping");
        }
        self.stop_engine(messages).await;
        outcome
    }

    /// Why the engine closed its channel.
    async fn engine_fault(&mut self) -> ConsensusFault {
        if let Some(refusal) = self.signer.as_ref().and_then(Signer::take_refusal) {
            return ConsensusFault::Guard(refusal);
        }
        // Before anything that stops makes room.
        let log = self.log.clone();
        let lack = tokio::task::spawn_blocking(move || wal_space::lack_of_room(&log)).await;
        // After a failure that a restart can heal, the engine ends; after one that makes its log
        // untrustworthy, it stops its actors and stays, on purpose.
        match tokio::time::timeout(STOP_WAIT_MAX, &mut self.engine.handle).await {
            Ok(_) => ConsensusFault::Engine,
            Err(_) => match lack.ok().flatten() {
                Some(source) => ConsensusFault::LogFull { path: self.log.clone(), source },
                None => ConsensusFault::Safety,
            },
        }
    }

    /// Stops the engine's actors and waits until its log is free for the next start.
    async fn stop_engine(self, messages: mpsc::Receiver<AppMsg<Ctx>>) {
        let Self { app, engine, log, .. } = self;
        // Questions that nobody will answer must not keep an actor.
        drop((messages, app));
        engine.actor.stop_children_and_wait(None, Some(STOP_WAIT_MAX)).await;
        engine.actor.stop(None);
        let mut task = engine.handle;
        if !task.is_finished() && tokio::time::timeout(STOP_WAIT_MAX, &mut task).await.is_err() {
            tracing::warn!("the consensus engine did not stop in time");
            task.abort();
        }
        if !is_free_within(&log, STOP_WAIT_MAX).await {
            tracing::warn!("the consensus engine did not release its log in time");
        }
    }
}

/// Waits until a stopped engine's network has closed its connections and others know it, for a while.
/// The engine does not wait for that itself. An engine that starts earlier is, for its peers, one more
/// connection of a node that they know: they do not tell it again what they have subscribed to, and
/// nothing that it publishes is sent to anybody.
async fn left(network: &Network) -> Result<(), StartError> {
    let Network::Peers { listen, .. } = network else { return Ok(()) };
    if let Some(address) = settings::socket_address(listen) {
        let closed = async {
            while TcpStream::connect(address).await.is_ok() {
                tokio::time::sleep(LOCK_POLL).await;
            }
        };
        if tokio::time::timeout(CLOSE_WAIT_MAX, closed).await.is_err() {
            return Err(StartError::Engine(format!("the last network still listens on {address}")));
        }
    }
    tokio::time::sleep(FAREWELL).await;
    Ok(())
}

/// Waits until nobody holds the engine's log, for a while.
async fn is_free_within(log: &Path, wait_max: Duration) -> bool {
    let free = async {
        while File::open(log).is_ok_and(|file| file.try_lock().is_err()) {
            tokio::time::sleep(LOCK_POLL).await;
        }
    };
    tokio::time::timeout(wait_max, free).await.is_ok()
}

impl Handle {
    /// Resolves when consensus has stopped: with `Ok` because it was asked to.
    ///
    /// # Errors
    /// The [`ConsensusFault`] that stopped it.
    pub async fn finished(&mut self) -> Result<(), ConsensusFault> {
        match (&mut self.task).await {
            Ok(outcome) => outcome,
            Err(panic) => Err(ConsensusFault::Panic(panic.to_string())),
        }
    }

    /// What happened so far, in numbers.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The engine's network.
    #[must_use]
    pub const fn control(&self) -> &Control {
        &self.control
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[cfg(test)]
mod tests {
    //! When the network of a stopped engine is taken for closed.

    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_next_engine_waits_until_nobody_listens_for_the_last_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let listen = format!("/ip4/0.0.0.0/tcp/{port}");
        let network = Network::Peers { listen, peers: Vec::new(), open: false };
        let waits = tokio::spawn(async move { left(&network).await });
        for _ in 0..3 {
            let asked = tokio::time::timeout(STOP_WAIT_MAX, listener.accept()).await;
            asked.expect("it looks again").expect("a connection");
        }
        assert!(!waits.is_finished());
        drop(listener);
        let left = tokio::time::timeout(STOP_WAIT_MAX, waits).await.expect("in time");
        left.expect("no panic").expect("the port was closed");
    }
}
