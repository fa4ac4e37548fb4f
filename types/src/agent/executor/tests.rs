//! The written and the binary form of ids of executors.

use super::*;
use crate::codec::{decode, encode};

fn hash() -> Hash {
    Hash::new([0xab; 32])
}

fn ids() -> [ExecutorId; 4] {
    let (manifest, image) = (hash(), hash());
    [
        ExecutorId::Wasm,
        ExecutorId::WasmWithModel { manifest },
        ExecutorId::Model { manifest },
        ExecutorId::Container { image },
    ]
}

#[test]
fn an_id_is_read_from_its_written_form() {
    let hex = "ab".repeat(32);
    let texts = ["wasm-1".to_owned()]
        .into_iter()
        .chain(["wasm-1", "model-1", "container"].map(|form| format!("{form}:{hex}")));
    for (text, id) in texts.zip(ids()) {
        assert_eq!(id.to_string(), text);
        assert_eq!(ExecutorId::parse(&text), Ok(id));
        assert!(text.len() <= ExecutorId::TEXT_BYTES_MAX, "{text}");
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, format!("{text:?}"));
        assert_eq!(serde_json::from_str::<ExecutorId>(&json).unwrap(), id);
    }
}

#[test]
fn what_is_no_id_is_told() {
    let hex = "ab".repeat(32);
    let wrong = [
        String::new(),
        "wasm-1:".to_owned(),
        "wasm-2".to_owned(),
        "model-1".to_owned(),
        format!("model-1{hex}"),
        format!("model-2:{hex}"),
        format!("Model-1:{hex}"),
        format!("container:{}", hex.to_uppercase()),
        format!("container:{hex}0"),
        format!("container:sha256:{hex}"),
        format!(" wasm-1:{hex}"),
    ];
    for text in wrong {
        let fault = ExecutorId::parse(&text).unwrap_err();
        assert_eq!(fault.expected, ExecutorId::EXPECTED, "{text:?}");
    }
}

#[test]
fn the_binary_form_is_33_bytes_in_the_order_of_ids() {
    let forms = ids().map(|id| encode(&id));
    let hashes = ["00", "ab", "ab", "ab"].map(|byte| byte.repeat(32));
    for (form, (bytes, (id, hash))) in forms.iter().zip(ids().iter().zip(hashes)).enumerate() {
        assert_eq!(const_hex::encode(bytes), format!("0{form}{hash}"));
        assert_eq!(decode::<ExecutorId>(bytes).unwrap(), *id);
    }
    assert!(forms.is_sorted() && ids().is_sorted());
}

#[test]
fn binary_forms_that_nobody_writes_are_not_read() {
    for (form, hash) in [(0, hash()), (4, Hash::ZERO)] {
        assert_eq!(ExecutorId::from_parts(form, hash), None);
        assert!(decode::<ExecutorId>(&encode(&(form, hash))).is_err());
    }
}
