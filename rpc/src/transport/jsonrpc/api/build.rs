//! Builders of unsigned transactions, one for each kind, made from the declarations of the kinds.
//! They never see a private key.

use jsonrpsee::types::{ErrorObjectOwned, Params};
use jsonrpsee::{Methods, RpcModule};

use crate::service::Context;
use crate::service::build::{self, Fields};
use crate::transport::jsonrpc::registry::Builder;
use crate::wire::BuildEnvelope;

/// The methods: `ombra_build` and the name of the kind.
pub(super) fn methods(context: &Context) -> Methods {
    let mut module = RpcModule::new(context.clone());
    for builder in Builder::all() {
        module
            .register_blocking_method(&builder.method, move |params: Params<'_>, context, _| {
                let (envelope, fields) = params.parse::<(BuildEnvelope, Fields)>()?;
                build::build(&context, builder.spec, envelope, fields)
                    .map_err(ErrorObjectOwned::from)
            })
            .expect("no two kinds have the same name");
    }
    module.into()
}
