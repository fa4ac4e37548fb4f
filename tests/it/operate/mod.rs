//! What an operator sees of a miner, with real processes: the commands while it runs and after it
//! was killed, its start, metrics and health, alarms, the policy's file, the cold address.

mod absent;
mod alarms;
mod asking;
mod metrics;
mod scene;
mod start;
mod sweep;
