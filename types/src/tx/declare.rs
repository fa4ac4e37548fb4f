//! The declaration of a kind: one table of fields, from which the macro makes the struct, the
//! reader, the writer, the checks of limits and the [`KindSpec`](super::spec::KindSpec).

use super::fields::Fields;
use super::spec::{FieldSpec, KindSpec};
use super::static_view::StaticView;
use crate::Rejection;
use crate::json::ObjectWriter;

/// An object whose members are declared.
pub(crate) trait Members: Sized {
    /// The members in the order in which they are written.
    const FIELDS: &'static [FieldSpec];

    /// Reads the members. Errors are MALFORMED.
    fn read(fields: &Fields<'_, '_>) -> Result<Self, Rejection>;

    /// Writes the required members.
    fn write_required(&self, out: &mut ObjectWriter<'_>);

    /// Writes the optional members that are present.
    fn write_optional(&self, out: &mut ObjectWriter<'_>);

    /// Checks the limits of each member by itself. Errors are INVALID_FIELD.
    fn check_members(&self, view: &StaticView<'_>) -> Result<(), Rejection>;

    /// Members that a later fork adds after the optional ones, all of them optional.
    const LATER: &'static [FieldSpec] = &[];

    /// Whether the members that a later fork adds have the right forms. Errors are MALFORMED.
    fn require_later(&self) -> Result<(), Rejection> {
        Ok(())
    }

    /// Checks the members that a later fork adds. Errors are MALFORMED or INVALID_FIELD.
    fn check_later(&self, view: &StaticView<'_>) -> Result<(), Rejection> {
        let _ = view;
        Ok(())
    }

    /// Members that the fork after that adds after those.
    const LATEST: &'static [FieldSpec] = &[];

    /// As [`Members::require_later`].
    fn require_latest(&self) -> Result<(), Rejection> {
        Ok(())
    }

    /// As [`Members::check_later`].
    fn check_latest(&self, view: &StaticView<'_>) -> Result<(), Rejection> {
        let _ = view;
        Ok(())
    }
}

/// A kind that is declared.
pub(crate) trait Declared: Members {
    /// The text of the member `type`.
    const TYPE: &'static str;
    /// The declaration.
    const SPEC: KindSpec;
}

/// Declares a kind, or an object within one:
///
/// ```text
/// declare! {
///     /// What it is for.
///     kind AgentNote = "AGENT_NOTE", section "5.12", fork V7 {
///         required {
///             /// What it is.
///             text "text": String, Text(LABEL);
///         }
///         optional {}
///     }
/// }
/// ```
///
/// A field is its documentation, its name in Rust and in JSON, its type, its [`Form`] with the limits,
/// and `filled …` if a builder can fill it in.
///
/// [`Form`]: super::spec::Form
macro_rules! declare {
    (
        $(#[doc = $doc:literal])+
        kind $kind:ident = $type_name:literal, section $section:literal $(, fork $fork:ident)? {
            $($members:tt)*
        }
    ) => {
        $crate::tx::declare::declare! {
            $(#[doc = $doc])+
            object $kind { $($members)* }
        }

        impl $crate::tx::declare::Declared for $kind {
            const TYPE: &'static str = $type_name;
            const SPEC: $crate::tx::spec::KindSpec = $crate::tx::spec::KindSpec {
                type_name: $type_name,
                name: stringify!($kind),
                section: $section,
                fork: $crate::tx::declare::declare!(@fork $($fork)?),
                fields: <Self as $crate::tx::declare::Members>::FIELDS,
                later: <Self as $crate::tx::declare::Members>::LATER,
                latest: <Self as $crate::tx::declare::Members>::LATEST,
                doc: concat!($($doc),+),
            };
        }
    };
    (
        $(#[doc = $doc:literal])+
        $(#[derive($derived:ident)])?
        object $object:ident {
            required {
                $(
                    $(#[doc = $required_doc:literal])+
                    $required:ident $required_name:literal: $required_type:ty,
                    $required_form:ident $(($required_limit:expr))? $(, filled $filled:ident)?;
                )*
            }
            optional {
                $(
                    $(#[doc = $optional_doc:literal])+
                    $optional:ident $optional_name:literal: $optional_type:ty,
                    $optional_form:ident $(($optional_limit:expr))?;
                )*
            }
            $(
                $(#[doc = $later_doc:literal])+
                later $later:ident: $later_type:ty;
            )?
            $(latest {
                $(#[doc = $latest_doc:literal])+
                $latest:ident: $latest_type:ty;
            })?
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, PartialEq, Eq, Debug $(, $derived)?)]
        pub struct $object {
            $($(#[doc = $required_doc])+ pub $required: $required_type,)*
            $($(#[doc = $optional_doc])+ pub $optional: Option<$optional_type>,)*
            $($(#[doc = $later_doc])+ pub $later: $crate::Late<$later_type>,)?
            $($(#[doc = $latest_doc])+ pub $latest: $crate::Late<$latest_type>,)?
        }

        #[cfg(test)]
        impl $crate::testing::Generated for $object {
            fn any() -> proptest::strategy::BoxedStrategy<Self> {
                use proptest::strategy::{Just, Strategy as _};
                use $crate::testing::Generated;
                let required = (Just(()), $(<$required_type as Generated>::any(),)*);
                let others = (
                    Just(()),
                    $(proptest::option::of(<$optional_type as Generated>::any()),)*
                    $(<$later_type as Generated>::any(),)?
                    $(<$latest_type as Generated>::any(),)?
                );
                let made = (required, others).prop_map(
                    |(((), $($required,)*), ((), $($optional,)* $($later,)? $($latest,)?))| Self {
                        $($required,)*
                        $($optional,)*
                        $($later: $later.into(),)?
                        $($latest: $latest.into(),)?
                    },
                );
                made.boxed()
            }
        }

        impl $crate::tx::declare::Members for $object {
            const FIELDS: &'static [$crate::tx::spec::FieldSpec] = &[
                $($crate::tx::spec::FieldSpec {
                    name: $required_name,
                    presence: $crate::tx::spec::Presence::Required,
                    form: $crate::tx::spec::Form::$required_form $(($required_limit))?,
                    filled: $crate::tx::declare::declare!(@filled $($filled)?),
                    doc: concat!($($required_doc),+),
                },)*
                $($crate::tx::spec::FieldSpec {
                    name: $optional_name,
                    presence: $crate::tx::spec::Presence::Optional,
                    form: $crate::tx::spec::Form::$optional_form $(($optional_limit))?,
                    filled: $crate::tx::spec::Filled::ByCaller,
                    doc: concat!($($optional_doc),+),
                },)*
            ];

            fn read(
                fields: &$crate::tx::fields::Fields<'_, '_>,
            ) -> Result<Self, $crate::Rejection> {
                Ok(Self {
                    $($required: $crate::tx::value::Value::read(fields, $required_name)?,)*
                    $($optional: $crate::tx::value::read_optional(fields, $optional_name)?,)*
                    $($later: $crate::Late::new(
                        <$later_type as $crate::tx::declare::Members>::read(fields),
                    ),)?
                    $($latest: $crate::Late::new(fields.unasked(
                        <$latest_type as $crate::tx::declare::Members>::read,
                    )),)?
                })
            }

            fn write_required(&self, out: &mut $crate::json::ObjectWriter<'_>) {
                let _ = &out;
                $($crate::tx::value::Value::write(&self.$required, $required_name, out);)*
            }

            fn write_optional(&self, out: &mut $crate::json::ObjectWriter<'_>) {
                let _ = &out;
                $(if let Some(value) = &self.$optional {
                    $crate::tx::value::Value::write(value, $optional_name, out);
                })*
                $(if let Some(later) = self.$later.ok() {
                    $crate::tx::declare::Members::write_optional(later, out);
                })?
                $(if let Some(latest) = self.$latest.ok() {
                    $crate::tx::declare::Members::write_optional(latest, out);
                })?
            }

            fn check_members(
                &self,
                view: &$crate::tx::StaticView<'_>,
            ) -> Result<(), $crate::Rejection> {
                let _ = view;
                $($crate::tx::value::Value::check(
                    &self.$required,
                    $required_name,
                    $crate::tx::declare::declare!(@limit $($required_limit)?),
                    view,
                )?;)*
                $(if let Some(value) = &self.$optional {
                    $crate::tx::value::Value::check(
                        value,
                        $optional_name,
                        $crate::tx::declare::declare!(@limit $($optional_limit)?),
                        view,
                    )?;
                })*
                Ok(())
            }

            $(
                const LATER: &'static [$crate::tx::spec::FieldSpec] =
                    <$later_type as $crate::tx::declare::Members>::FIELDS;

                fn require_later(&self) -> Result<(), $crate::Rejection> {
                    self.$later.get().map(drop)
                }

                fn check_later(
                    &self,
                    view: &$crate::tx::StaticView<'_>,
                ) -> Result<(), $crate::Rejection> {
                    let later: &$later_type = self.$later.get()?;
                    $crate::tx::declare::Members::check_members(later, view)
                }
            )?

            $(
                const LATEST: &'static [$crate::tx::spec::FieldSpec] =
                    <$latest_type as $crate::tx::declare::Members>::FIELDS;

                fn require_latest(&self) -> Result<(), $crate::Rejection> {
                    self.$latest.get().map(drop)
                }

                fn check_latest(
                    &self,
                    view: &$crate::tx::StaticView<'_>,
                ) -> Result<(), $crate::Rejection> {
                    let latest: &$latest_type = self.$latest.get()?;
                    $crate::tx::declare::Members::check_members(latest, view)
                }
            )?
        }
    };
    (@fork) => { None };
    (@fork $fork:ident) => { Some($crate::forks::Fork::$fork) };
    (@filled) => { $crate::tx::spec::Filled::ByCaller };
    (@filled $filled:ident) => { $crate::tx::spec::Filled::$filled };
    (@limit) => { &() };
    (@limit $limit:expr) => { &$limit };
}

pub(crate) use declare;
