//! The builders of unsigned transactions, one for each kind, made from the kinds' declarations.

use std::borrow::Cow;
use std::sync::LazyLock;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use types::Body;
use types::tx::spec::{FieldSpec, Filled, Form, KindSpec, Presence};

use crate::error::{NOT_FOUND, REJECTED};
use crate::transport::fault::ParamFault;
use crate::wire::field_schema;

/// Every builder, in the order of the protocol's table.
static BUILDERS: LazyLock<Vec<Builder>> =
    LazyLock::new(|| Body::KINDS.iter().map(Builder::of).collect());

/// What a caller may give to a builder in addition to the kind's own fields: the name and the
/// description.
type Extra = (&'static str, &'static str);

/// The builder of one kind.
#[derive(Debug)]
pub(crate) struct Builder {
    /// The kind.
    pub(crate) spec: &'static KindSpec,
    /// `ombra_buildTransfer`.
    pub(crate) method: String,
    /// What it does, in a sentence.
    pub(crate) summary: String,
    /// Strings that a caller may give in addition to the kind's own fields. All are optional.
    extra: &'static [Extra],
}

impl Builder {
    /// Every builder, in the order of the protocol's table.
    pub(crate) fn all() -> &'static [Self] {
        &BUILDERS
    }

    fn of(spec: &'static KindSpec) -> Self {
        let KindSpec { type_name, name, .. } = spec;
        let computed = spec.fields.iter().filter(|field| field.filled == Filled::Computed);
        let computed: Vec<&str> = computed.map(|field| field.name).collect();
        let filled_in = match computed.as_slice() {
            [] => String::new(),
            [one] => format!(" and fills in {one}"),
            several => format!(" and fills in {}", several.join(", ")),
        };
        Self {
            spec,
            method: format!("ombra_build{name}"),
            summary: format!("Builds an unsigned {type_name}{filled_in}."),
            extra: extra(type_name),
        }
    }

    /// The fields that a caller may give, in their order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &'static FieldSpec> {
        self.spec.all_fields().filter(|field| field.filled != Filled::Computed)
    }

    /// The errors that it returns. The builder of an AGENT_FINISH looks up the run.
    pub(crate) fn errors(&self) -> &'static [i32] {
        if self.spec.type_name == "AGENT_FINISH" { &[REJECTED, NOT_FOUND] } else { &[REJECTED] }
    }

    /// The names of everything that a caller may give.
    pub(crate) fn members(&self) -> Vec<&'static str> {
        let extra = self.extra.iter().map(|(name, _)| *name);
        self.fields().map(|field| field.name).chain(extra).collect()
    }

    /// The parameters as documents list them: `to, amount, fee?`.
    pub(crate) fn signature(&self) -> String {
        let extra: Vec<String> = self.extra.iter().map(|(name, _)| format!("{name}?")).collect();
        let asked = |wanted: bool| self.fields().filter(move |it| it.is_asked_for() == wanted);
        let required = asked(true).map(|field| field.name.to_owned());
        let optional = asked(false).map(|field| format!("{}?", field.name));
        required.chain(optional).chain(extra).collect::<Vec<_>>().join(", ")
    }

    /// The schema of what a caller gives: a reference to its definition.
    pub(crate) fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let name = format!("Build{}", self.spec.name);
        let mut properties = Map::new();
        for field in self.fields() {
            let schema = described(field, field_schema(field, generator));
            properties.insert(field.name.to_owned(), schema);
        }
        for (name, doc) in self.extra {
            let schema = json!({ "type": ["string", "null"], "description": doc });
            properties.insert((*name).to_owned(), schema);
        }
        let required: Vec<&str> =
            self.fields().filter(|field| field.is_asked_for()).map(|field| field.name).collect();
        let schema = json!({
            "type": "object",
            "description": self.spec.doc(),
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        generator.definitions_mut().insert(name.clone(), schema);
        let path = generator.settings().definitions_path.trim_end_matches('/');
        json_schema!({ "$ref": format!("#{path}/{name}") })
    }

    /// What is wrong with the text of a caller's object. Does not check the values: the rules of
    /// the kind do that.
    pub(crate) fn fault(&self, text: &str) -> Option<ParamFault> {
        let Ok(given) = serde_json::from_str::<Map<String, Value>>(text) else {
            let expected = "an object with the fields of the kind".to_owned();
            return Some(ParamFault { path: String::new(), got: None, expected });
        };
        let known = self.members();
        if let Some(path) = given.keys().find(|name| !known.contains(&name.as_str())) {
            let expected = format!("one of {}", known.join(", "));
            return Some(ParamFault { path: path.clone(), got: Some("unknown"), expected });
        }
        let is_missing = |field: &FieldSpec| {
            field.is_asked_for() && given.get(field.name).is_none_or(Value::is_null)
        };
        let missing = self.fields().find(|field| is_missing(field))?;
        let (path, expected) = (missing.name.to_owned(), missing.doc().to_owned());
        Some(ParamFault { path, got: Some("missing"), expected })
    }
}

/// The caller of a builder may give the seed of a conversation id instead of the id.
fn extra(type_name: &str) -> &'static [Extra] {
    match type_name {
        "AGENT_REQUEST" => &[(
            "seed",
            "The seed for the id of a new conversation. Give it instead of `conversationId`.",
        )],
        _ => &[],
    }
}

/// The schema of a field with its description, and what happens if the caller leaves the field out.
fn described(field: &FieldSpec, mut schema: Value) -> Value {
    let left_out = match (field.filled, field.presence) {
        (Filled::ByCaller, Presence::Required) | (Filled::Computed, _) => None,
        (Filled::ByCaller, Presence::Optional) => Some("Optional."),
        (Filled::Empty, _) if matches!(field.form, Form::Amount(_)) => Some("0 if absent."),
        (Filled::Empty, _) => Some("Empty if absent."),
        (Filled::Sender, _) => Some("The sender if absent."),
        (Filled::Default, _) => Some("Computed if absent."),
    };
    if let (Some(note), Some(members)) = (left_out, schema.as_object_mut()) {
        let text = format!("{} {note}", field.doc());
        members.insert("description".to_owned(), text.into());
    }
    schema
}

/// The parameters that each builder takes, by its method's name, as docs/rpc.md lists them.
#[must_use]
pub fn builder_signatures() -> Vec<(Cow<'static, str>, String)> {
    let all = Builder::all().iter();
    all.map(|builder| (Cow::from(builder.method.as_str()), builder.signature())).collect()
}
