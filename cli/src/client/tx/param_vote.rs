//! `ombra tx param-vote`: a validator's vote for another value of a parameter.

use clap::Args;
use state::params::{CHANGEABLE, Changeable};
use types::Body;
use types::params::INTEGER_MAX;
use types::tx::ParamVote;

use super::SendArgs;
use super::deliver::Delivery;
use crate::client::{CliError, Out, Outcome};

/// A vote for a value of a parameter.
#[derive(Args, Debug)]
pub struct ParamVoteArgs {
    /// The parameter, such as baseFeeFloor
    name: String,
    /// The new value: fees in micro-OMBRA, times in milliseconds
    #[arg(value_parser = clap::value_parser!(u64).range(..=INTEGER_MAX))]
    value: u64,
    /// The first block in which the new value applies
    #[arg(value_parser = clap::value_parser!(u64).range(1..=INTEGER_MAX))]
    height: u64,
    #[command(flatten)]
    send: SendArgs,
}

pub(super) async fn run(args: ParamVoteArgs, out: Out<'_>) -> Outcome {
    let ParamVoteArgs { name, value, height, send } = args;
    check(&name, value)?;
    let delivery = Delivery::open(send)?;
    delivery.deliver(&Body::ParamVote(ParamVote { name, value, height }), out).await
}

/// Refuses what no chain takes, before a key is asked for.
fn check(name: &str, value: u64) -> Outcome {
    let Some(Changeable { min, max, .. }) = Changeable::find(name) else {
        let names = CHANGEABLE.map(|param| param.name).join(", ");
        return Err(CliError::Usage(format!("NAME is {name:?}, expected one of {names}")));
    };
    if (min..=max).contains(&&value) {
        return Ok(());
    }
    Err(CliError::Usage(format!("VALUE is {value}, expected {min} to {max} for {name}")))
}

#[cfg(test)]
mod tests {
    //! What is voted for.

    use super::check;

    #[test]
    fn a_vote_names_a_parameter_that_votes_can_change_and_a_value_in_its_bounds() {
        assert!(check("baseFeeFloor", 1).is_ok() && check("baseFeeFloor", 1_000_000).is_ok());
        let said = |name, value| check(name, value).unwrap_err().to_string();
        assert!(said("maxBlockBytes", 1).contains("expected one of baseFeeFloor, maxBlockWork"));
        assert!(said("baseFeeFloor", 0).contains("VALUE is 0, expected 1 to 1000000"));
    }
}
