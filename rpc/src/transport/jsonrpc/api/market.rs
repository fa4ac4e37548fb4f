//! Methods for requesters: payloads and results of an agent's methods, prices, elections.

use jsonrpsee::proc_macros::rpc;
use types::Hash;

use crate::error::RpcError;
use crate::service::{Context, market};
use crate::wire::{
    DecodeQuery, DecodedResult, ElectionView, EncodeQuery, EncodedCall, EstimateQuery, EstimateView,
};

/// Methods for requesters.
#[rpc(server, namespace = "ombra")]
pub trait MarketRpc {
    /// Encodes the payload of a call of an agent's method.
    #[method(name = "encodeCall", blocking)]
    fn encode_call(&self, call: EncodeQuery) -> Result<EncodedCall, RpcError>;

    /// Decodes the result of an agent's method.
    #[method(name = "decodeResult", blocking)]
    fn decode_result(&self, answer: DecodeQuery) -> Result<DecodedResult, RpcError>;

    /// Estimates the cost of a call and the number of eligible miners.
    #[method(name = "estimateCall", blocking)]
    fn estimate_call(&self, call: EstimateQuery) -> Result<EstimateView, RpcError>;

    /// Returns the candidates from which the members of a call were drawn.
    #[method(name = "getElection", blocking)]
    fn election(&self, call_id: Hash, round: Option<u8>) -> Result<ElectionView, RpcError>;
}

impl MarketRpcServer for Context {
    fn encode_call(&self, call: EncodeQuery) -> Result<EncodedCall, RpcError> {
        market::encode_call(&self.ports, call)
    }

    fn decode_result(&self, answer: DecodeQuery) -> Result<DecodedResult, RpcError> {
        market::decode_result(&self.ports, answer)
    }

    fn estimate_call(&self, call: EstimateQuery) -> Result<EstimateView, RpcError> {
        market::estimate_call(&self.ports, call)
    }

    fn election(&self, call_id: Hash, round: Option<u8>) -> Result<ElectionView, RpcError> {
        market::election(&self.ports, call_id, round)
    }
}
