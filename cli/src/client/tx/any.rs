//! `ombra tx any`: a transaction of any kind, field by field. The options are made from the kinds'
//! declarations, so a new kind can be sent without a command of its own.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use serde_json::{Map, Value, json};
use types::tx::spec::{FieldSpec, Filled, Form, IntegerLimit, KindSpec, Presence, TextLimit};
use types::{Body, Hash, PublicKey, Signature};

use super::SendArgs;
use super::deliver::Delivery;
use crate::client::input::Payee;
use crate::client::{CliError, Out, Outcome, input};

/// A transaction of some kind.
#[derive(Debug)]
pub struct AnyArgs {
    kind: &'static KindSpec,
    fields: Map<String, Value>,
    /// The development accounts that are named by their numbers.
    development: Vec<Payee>,
    send: SendArgs,
}

/// Carries out `ombra tx any`.
pub(super) async fn run(args: AnyArgs, out: Out<'_>) -> Outcome {
    let AnyArgs { kind, mut fields, development, send } = args;
    let signer = send.signer.clone();
    let delivery = Delivery::open(send)?;
    for field in kind.fields.iter().filter(|field| field.filled == Filled::Sender) {
        let sender = delivery.sender.keypair().address().to_string();
        fields.entry(field.name).or_insert_with(|| json!(sender));
    }
    let text = Value::Object(fields).to_string();
    let body = Body::parse(kind.type_name, text.as_bytes())
        .map_err(|rejection| CliError::Usage(rejection.to_string()))?;
    let paid = body.payee(delivery.sender.keypair().address());
    if let Some(payee) = development.into_iter().find(|named| Some(named.address) == paid) {
        signer.pays(payee)?;
    }
    delivery.deliver(&body, out).await
}

impl Subcommand for AnyArgs {
    fn augment_subcommands(command: Command) -> Command {
        Body::KINDS.iter().fold(command, |command, kind| command.subcommand(subcommand(kind)))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Body::KINDS.iter().any(|kind| kebab_of_type(kind) == name)
    }
}

impl FromArgMatches for AnyArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let missing = || Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        let is_named = |kind: &&KindSpec| kebab_of_type(kind) == name;
        let kind = Body::KINDS.iter().find(is_named).ok_or_else(missing)?;
        let mut fields = Map::new();
        let mut development = Vec::new();
        for field in kind.all_fields() {
            if let Some(value) = given(field, matches) {
                fields.insert(field.name.to_owned(), value);
            }
            if matches!(field.form, Form::Address) {
                let written = matches.get_raw(field.name).into_iter().flatten();
                let written = written.filter_map(|it| it.to_str());
                let named = written.filter(|it| it.starts_with(input::DEVELOPMENT));
                development.extend(named.filter_map(|it| input::payee(it).ok()));
            }
        }
        Ok(Self { kind, fields, development, send: SendArgs::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// What the command line says of a field, or what stands there if it may be left out.
fn given(field: &FieldSpec, matches: &ArgMatches) -> Option<Value> {
    let values: Vec<Value> = matches.get_many(field.name).into_iter().flatten().cloned().collect();
    match (field.form, values.as_slice(), field.filled) {
        (Form::Names(_), [], Filled::Empty) => Some(json!([])),
        (Form::Amount(_), [], Filled::Empty) => Some(json!("0")),
        (_, [], _) => None,
        (Form::Names(_) | Form::Addresses(_), _, _) => Some(Value::Array(values)),
        (_, [value, ..], _) => Some(value.clone()),
    }
}

fn subcommand(kind: &'static KindSpec) -> Command {
    let command = Command::new(kebab_of_type(kind));
    let command = kind.all_fields().fold(command, |command, field| command.arg(option(field)));
    // After the arguments, which bring a description of their own.
    SendArgs::augment_args(command).about(kind.doc().trim_end_matches('.'))
}

fn option(field: &'static FieldSpec) -> Arg {
    let can_be_left_out = field.presence == Presence::Optional
        || matches!(field.filled, Filled::Sender | Filled::Empty);
    let (value_name, parser) = reader(field.form);
    let arg = Arg::new(field.name)
        .long(kebab_of_field(field))
        .value_name(value_name)
        .help(help(field))
        .required(!can_be_left_out)
        .value_parser(parser);
    match field.form {
        Form::Names(_) | Form::Addresses(_) => arg.value_delimiter(',').action(ArgAction::Append),
        Form::Address
        | Form::Amount(_)
        | Form::Base64
        | Form::Boolean
        | Form::Hash
        | Form::Integer(_)
        | Form::Key
        | Form::Hex(_)
        | Form::Object(_)
        | Form::Objects(_)
        | Form::Signature
        | Form::Text(_) => arg.action(ArgAction::Set),
    }
}

fn help(field: &FieldSpec) -> String {
    let text = field.doc().trim_end_matches('.');
    match (field.filled, field.form) {
        (Filled::Sender, _) => format!("{text} [default: the sender]"),
        (Filled::Empty, Form::Amount(_)) => format!("{text} [default: 0]"),
        (Filled::Empty, _) => format!("{text} [default: none]"),
        (Filled::ByCaller | Filled::Default | Filled::Computed, _) => text.to_owned(),
    }
}

/// How a value is called, and how it becomes JSON.
fn reader(form: Form) -> (&'static str, ValueParser) {
    match form {
        Form::Address => ("ADDRESS", ValueParser::new(address)),
        Form::Addresses(_) => ("ADDRESSES", ValueParser::new(address)),
        Form::Amount(_) => ("AMOUNT", ValueParser::new(amount)),
        Form::Base64 => ("BASE64", ValueParser::new(text)),
        Form::Boolean => ("BOOL", ValueParser::new(boolean)),
        Form::Hash => ("HASH", ValueParser::new(hash)),
        Form::Integer(IntegerLimit { unit: "ms" | "ms since 1970", .. }) => {
            ("MS", ValueParser::new(integer))
        }
        Form::Integer(_) => ("N", ValueParser::new(integer)),
        Form::Key => ("KEY", ValueParser::new(key)),
        Form::Names(_) => ("NAMES", ValueParser::new(text)),
        Form::Hex(_) => ("HEX", ValueParser::new(text)),
        Form::Object(_) => ("JSON", ValueParser::new(object)),
        Form::Objects(_) => ("JSON", ValueParser::new(objects)),
        Form::Signature => ("SIGNATURE", ValueParser::new(signature)),
        Form::Text(TextLimit::BlobId) => ("BLOB", ValueParser::new(text)),
        Form::Text(TextLimit::Bytes { .. }) => ("TEXT", ValueParser::new(text)),
        Form::Text(TextLimit::OneOf(_)) => ("WORD", ValueParser::new(text)),
    }
}

fn text(value: &str) -> Result<Value, String> {
    Ok(json!(value))
}

fn address(value: &str) -> Result<Value, String> {
    input::address(value).map(|address| json!(address.to_string()))
}

fn amount(value: &str) -> Result<Value, String> {
    input::amount(value).map(|amount| json!(amount.to_string()))
}

fn hash(value: &str) -> Result<Value, String> {
    value.parse().map(|hash: Hash| json!(hash.to_string())).map_err(|e| e.to_string())
}

fn key(value: &str) -> Result<Value, String> {
    value.parse().map(|key: PublicKey| json!(key.to_string())).map_err(|e| e.to_string())
}

fn signature(value: &str) -> Result<Value, String> {
    value.parse().map(|it: Signature| json!(it.to_string())).map_err(|e| e.to_string())
}

fn integer(value: &str) -> Result<Value, String> {
    let number: u64 = value.parse().map_err(|_error| format!("{value:?} is not a whole number"))?;
    Ok(json!(number))
}

fn boolean(value: &str) -> Result<Value, String> {
    let truth: bool =
        value.parse().map_err(|_error| format!("{value:?}: expected true or false"))?;
    Ok(json!(truth))
}

fn object(value: &str) -> Result<Value, String> {
    match serde_json::from_str(value) {
        Ok(members @ Value::Object(_)) => Ok(members),
        Ok(_) | Err(_) => Err("expected a JSON object".to_owned()),
    }
}

fn objects(value: &str) -> Result<Value, String> {
    match serde_json::from_str(value) {
        Ok(list @ Value::Array(_)) => Ok(list),
        Ok(_) | Err(_) => Err("expected a JSON array of objects".to_owned()),
    }
}

/// `SOCIAL_BLOB_INIT` as `social-blob-init`.
fn kebab_of_type(kind: &KindSpec) -> &'static str {
    kebab(kind.type_name)
}

/// `agentRunId` as `agent-run-id`.
fn kebab_of_field(field: &FieldSpec) -> &'static str {
    kebab(field.name)
}

/// The names of kinds and fields as the command line writes them; clap keeps no text of its own.
static NAMES: LazyLock<BTreeMap<&'static str, String>> = LazyLock::new(|| {
    let types =
        Body::KINDS.iter().map(|kind| (kind.type_name, kind.type_name.to_ascii_lowercase()));
    let types = types.map(|(name, lower)| (name, lower.replace('_', "-")));
    let fields = Body::KINDS.iter().flat_map(KindSpec::all_fields);
    types.chain(fields.map(|field| (field.name, kebab_of_camel(field.name)))).collect()
});

fn kebab(name: &'static str) -> &'static str {
    NAMES.get(name).map_or(name, String::as_str)
}

fn kebab_of_camel(name: &str) -> String {
    let mut kebab = String::with_capacity(name.len().saturating_add(4));
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            kebab.push('-');
        }
        kebab.push(character.to_ascii_lowercase());
    }
    kebab
}
