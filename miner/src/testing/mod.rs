//! What tests of several modules share.

mod crash_points;
mod toolbox;
mod until;

pub(crate) use crash_points::{crash_point, die_at, points_passed};
pub(crate) use toolbox::{manifest, surroundings, toolbox};
pub(crate) use until::comes;
