//! What tests of several modules share.

mod crash_points;
mod toolbox;

pub(crate) use crash_points::{crash_point, die_at, points_passed};
pub(crate) use toolbox::toolbox;
