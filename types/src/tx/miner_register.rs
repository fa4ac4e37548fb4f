//! MINER_REGISTER: an entry in the miner directory (docs/protocol.md section 5.9).

use super::fields::Fields;
use super::{Kind, StaticView, limits};
use crate::Rejection;
use crate::json::ObjectWriter;

/// The fields of MINER_REGISTER.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MinerRegister {
    /// At most 256 bytes.
    pub name: String,
    /// At most 64 entries of 64 bytes, each once.
    pub capabilities: Vec<String>,
    /// At most 256 bytes.
    pub model_info: String,
}

impl Kind for MinerRegister {
    const TYPE: &'static str = "MINER_REGISTER";

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Rejection> {
        Ok(Self {
            name: fields.string("name")?,
            capabilities: fields.strings("capabilities")?,
            model_info: fields.string("modelInfo")?,
        })
    }

    fn write_required(&self, out: &mut ObjectWriter<'_>) {
        out.string("name", &self.name);
        out.strings("capabilities", &self.capabilities);
        out.string("modelInfo", &self.model_info);
    }

    fn check_static(&self, _: &StaticView<'_>) -> Result<(), Rejection> {
        limits::label("name", &self.name)?;
        limits::name_list("capabilities", &self.capabilities)?;
        limits::label("modelInfo", &self.model_info)
    }
}
