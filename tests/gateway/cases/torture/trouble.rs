//! What happens to the gateway and to its node.

use std::time::Duration;

use anyhow::Context as _;
use testkit::dice::Dice;
use testkit::gateway::{Gateway, Home};
use testkit::node::Node;
use testkit::process::{Signal, signal};

use super::Town;

/// How long there is peace, milliseconds.
const PEACE_MS: (u64, u64) = (50, 900);
/// How long a process is away, milliseconds.
const AWAY_MS: (u64, u64) = (1, 700);

/// Who can be killed.
pub(super) struct Trouble<'a> {
    pub(super) home: &'a Home,
    pub(super) gateway: &'a mut Option<Gateway>,
    pub(super) node: &'a mut Node,
    pub(super) town: &'a Town,
}

impl Trouble<'_> {
    /// Waits a little, and makes trouble once.
    pub(super) fn make(&mut self, dice: &mut Dice) -> anyhow::Result<()> {
        pass(dice, PEACE_MS);
        match dice.roll(0, 12) {
            0..=6 => {
                self.gateway()?.kill()?;
                self.town.happens("kill of the gateway");
                pass(dice, AWAY_MS);
            }
            7 => {
                self.gateway()?.stop()?;
                self.town.happens("stop of the gateway");
            }
            8 | 9 => {
                signal(self.node.pid(), Signal::STOP)?;
                self.town.happens("pause of the node");
                pass(dice, AWAY_MS);
                signal(self.node.pid(), Signal::CONT)?;
            }
            10 => {
                self.node.kill()?;
                self.town.happens("kill of the node");
                pass(dice, AWAY_MS);
                self.node.restart_in_place()?;
            }
            _ => {
                self.node.kill()?;
                self.gateway()?.kill()?;
                self.town.happens("kill of both");
                self.node.restart_in_place()?;
            }
        }
        self.end()
    }

    /// Whoever is away comes back.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        if self.gateway.is_none() {
            *self.gateway = Some(self.home.start()?);
        }
        Ok(())
    }

    fn gateway(&mut self) -> anyhow::Result<Gateway> {
        self.gateway.take().context("a gateway that runs")
    }
}

fn pass(dice: &mut Dice, (from, below): (u64, u64)) {
    // How long something lasts is what is tried.
    std::thread::sleep(Duration::from_millis(dice.roll(from, below)));
}
