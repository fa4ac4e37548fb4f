//! Writing a genesis: the canonical line that is hashed, and the same for people.

use std::collections::BTreeMap;

use state::{ChainRules, FirstAgent, Forks};
use types::json::ObjectWriter;
use types::{Address, Amount};

use crate::params::FIELDS;
use crate::spec::Validator;

/// One line of JSON with nothing left out.
pub(crate) fn canonical(
    chain: &ChainRules,
    time: u64,
    validators: &[Validator],
    accounts: &BTreeMap<Address, Amount>,
    agents: &[FirstAgent],
) -> String {
    let mut text = String::with_capacity(1_024);
    let mut object = ObjectWriter::new(&mut text);
    object.string("chainId", &chain.chain_id);
    object.integer("genesisTime", time);
    object.objects("validators", validators, write_validator);
    let accounts: Vec<_> = accounts.iter().collect();
    object.objects("accounts", &accounts, |(address, balance): &(_, &Amount), object| {
        object.display("address", address);
        object.display("balance", balance);
    });
    // As below, a file without agents has the text that it had before there could be any.
    if !agents.is_empty() {
        object.objects("agents", agents, |FirstAgent { owner, metadata }, object| {
            object.display("owner", owner);
            object.string("metadata", metadata);
        });
    }
    object.object("forks", |object| {
        let Forks { v6, validator_vote, v7, v8 } = chain.forks;
        object.integer("v6", v6);
        // A file without this fork has the text, and so the hash, that it had before there was one.
        if let Some(height) = validator_vote {
            object.integer("validatorVote", height);
        }
        if let Some(height) = v7 {
            object.integer("v7", height);
        }
        if let Some(height) = v8 {
            object.integer("v8", height);
        }
    });
    object.object("params", |object| {
        for field in &FIELDS {
            field.write(chain, object);
        }
    });
    object.end();
    text
}

fn write_validator(validator: &Validator, object: &mut ObjectWriter<'_>) {
    let Validator { public_key, power, name } = validator;
    object.display("publicKey", public_key);
    object.integer("power", *power);
    if let Some(name) = name {
        object.string("name", name);
    }
}

/// A canonical text with line breaks and two spaces per level; empty lists stay on their line.
pub(crate) fn indented(canonical: &str) -> String {
    let mut out = String::with_capacity(canonical.len().saturating_mul(2));
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut characters = canonical.chars().peekable();
    while let Some(character) = characters.next() {
        if quoted {
            out.push(character);
            quoted = escaped || character != '"';
            escaped = !escaped && character == '\\';
            continue;
        }
        match character {
            '{' | '[' => {
                out.push(character);
                depth = depth.saturating_add(1);
                if matches!(characters.peek(), Some('}' | ']')) {
                    depth = depth.saturating_sub(1);
                    out.extend(characters.next());
                } else {
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(character);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                quoted = character == '"';
                out.push(character);
            }
        }
    }
    out.push('\n');
    out
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}
