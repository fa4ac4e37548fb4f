//! Subscriptions that survive a lost connection: the stream goes on at the event after the last one seen.

use std::time::Duration;

use jsonrpsee::core::client::{Subscription, SubscriptionClientT};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::connection::{Client, Positional};
use super::{Answer, ClientError};

/// The first pause before a new connection; it doubles each time.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// How long a lost connection is tried again before it is given up.
const RESUME_TIMEOUT: Duration = Duration::from_secs(60);

/// What a subscription tells about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// New blocks.
    Blocks,
    /// Included transactions; filter `address`, `type`.
    Transactions,
    /// Transactions accepted by or dropped from the pool.
    Pool,
    /// Life of agent runs; filter `agentRunId`, `submitter`, `miner`, `status`.
    AgentRuns,
    /// Conversation turns; filter `conversationId`.
    Chat,
    /// Life of calls of agents; filter `callId`, `agentId`, `requester`, `member`.
    Calls,
}

impl Kind {
    /// The kind's name in the interface.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::Transactions => "transactions",
            Self::Pool => "pool",
            Self::AgentRuns => "agentRuns",
            Self::Chat => "chat",
            Self::Calls => "calls",
        }
    }
}

/// How far a stream has been read: enough to go on without repeating or losing an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct EventPlace {
    /// The block of the last event.
    block: u64,
    /// How many events of that block were seen.
    seen: u64,
}

/// A stream of events. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Events {
    client: Client,
    kind: Kind,
    filter: Map<String, Value>,
    /// Where the stream begins again when it is lost before its first event; none for the pool.
    resume_from: Option<u64>,
    place: Option<EventPlace>,
    /// Events of the place's block that the node sends again after a resumption.
    skip: u64,
    stream: Subscription<Box<RawValue>>,
}

impl Client {
    /// Subscribes to events. With `from_block` everything since then comes first, once and in order.
    /// Without it the stream begins now: the height is asked for once, so that a connection which is
    /// lost before the first event loses none.
    ///
    /// # Errors
    /// When the node is not reachable or refuses the filter.
    pub async fn subscribe(
        &self,
        kind: Kind,
        filter: Map<String, Value>,
        from_block: Option<u64>,
    ) -> Result<Events, ClientError> {
        let resume_from = match (kind, from_block) {
            (Kind::Pool, _) => None,
            (_, Some(index)) => Some(index),
            (_, None) => Some(self.chain_info().await?.height.saturating_add(1)),
        };
        let stream = self.open_stream(kind, &filter, from_block).await?;
        let client = self.clone();
        Ok(Events { client, kind, filter, resume_from, place: None, skip: 0, stream })
    }

    async fn open_stream(
        &self,
        kind: Kind,
        filter: &Map<String, Value>,
        from_block: Option<u64>,
    ) -> Result<Subscription<Box<RawValue>>, ClientError> {
        let mut filter = filter.clone();
        if let Some(index) = from_block {
            filter.insert("fromBlock".into(), json!(index));
        }
        let params = Positional::of(METHOD, &(kind.name(), filter))?;
        self.socket()
            .await?
            .subscribe(METHOD, params, "ombra_unsubscribe")
            .await
            .map_err(|source| ClientError::from_call(self.socket_url(), source))
    }
}

const METHOD: &str = "ombra_subscribe";

impl Events {
    /// The next event. A lost connection is opened again for up to a minute; events that the node
    /// dropped because this client was slow are asked for again. Events of the pool have no past: what
    /// is lost of them stays lost. An event with the member `lagged` says how many they are, and the
    /// event `{"gap":true}` that the connection was lost, and any number of events with it.
    ///
    /// # Errors
    /// When the node stays away, refuses, or sends something that is not JSON.
    pub async fn next(&mut self) -> Result<Answer<Value>, ClientError> {
        loop {
            let Some(text) = self.stream.next().await else {
                self.resume().await?;
                if self.kind == Kind::Pool {
                    return Answer::own(json!({ "gap": true }))
                        .map_err(|source| ClientError::Unreadable { method: METHOD, source });
                }
                continue;
            };
            let text = text.map_err(|source| ClientError::Unreadable { method: METHOD, source })?;
            let event: Answer = Answer::read(METHOD, text)?;
            if event["lagged"].is_u64() && self.resumption_block().is_some() {
                self.resume().await?;
            } else if self.is_new(&event) {
                return Ok(event);
            }
        }
    }

    /// Counts an event, and tells whether it was not seen before a resumption.
    fn is_new(&mut self, event: &Value) -> bool {
        // An event of the pool names the block that took a transaction, but the stream has no past.
        let block = event["blockIndex"].as_u64().filter(|_| self.kind != Kind::Pool);
        let Some(block) = block else {
            return true;
        };
        match &mut self.place {
            Some(place) if place.block == block => {
                if self.skip > 0 {
                    self.skip -= 1;
                    return false;
                }
                place.seen = place.seen.saturating_add(1);
            }
            place => {
                self.skip = 0;
                *place = Some(EventPlace { block, seen: 1 });
            }
        }
        true
    }

    /// The block from which a resumed stream starts; none for the pool, which has no past.
    fn resumption_block(&self) -> Option<u64> {
        self.place.map(|place| place.block).or(self.resume_from)
    }

    /// Opens the stream again where it was lost.
    async fn resume(&mut self) -> Result<(), ClientError> {
        let from_block = self.resumption_block();
        let deadline = Instant::now() + RESUME_TIMEOUT;
        let mut pause = PAUSE_MIN;
        loop {
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
            match self.client.open_stream(self.kind, &self.filter, from_block).await {
                Ok(stream) => {
                    self.stream = stream;
                    let repeats = self.place.filter(|_| from_block.is_some());
                    self.skip = repeats.map_or(0, |place| place.seen);
                    return Ok(());
                }
                Err(error) => match error.retry_after() {
                    Some(hint) if Instant::now() < deadline => pause = pause.max(hint),
                    Some(_) | None => return Err(error),
                },
            }
        }
    }
}
