//! Every method with its parameters, result and errors. `rpc.discover` returns this list, the node
//! checks parameters against it, and metrics use its names.

mod bind;
mod builder;
mod list;
mod method;
mod methods;
mod openrpc;
mod param;

pub(crate) use bind::{bind, bind_text, count_elements};
pub(crate) use builder::Builder;
pub use builder::builder_signatures;
pub use method::{Kind, Method};
pub use methods::Registry;
pub use openrpc::document;
pub use param::Param;
