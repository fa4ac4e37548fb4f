//! How short what fits a schema may be.

use serde_json::Value;

/// About the fewest bytes of JSON that fit a schema in its one form.
#[must_use]
pub fn bytes_min(form: &Value) -> usize {
    let shortest = |forms: &[Value]| forms.iter().map(bytes_min).min().unwrap_or_default();
    if let Some(branches) = form.get("anyOf").and_then(Value::as_array) {
        return shortest(branches);
    }
    if let Some(values) = form.get("enum").and_then(Value::as_array) {
        return values.iter().map(|value| value.to_string().len()).min().unwrap_or_default();
    }
    let count = |key: &str| {
        let count = form.get(key).and_then(Value::as_u64).unwrap_or_default();
        usize::try_from(count).unwrap_or(usize::MAX)
    };
    match form.get("type").and_then(Value::as_str) {
        Some("object") => {
            let names = form.get("required").and_then(Value::as_array);
            let member = |name: &Value| {
                let of = form.get("properties").and_then(|it| it.get(name.as_str()?));
                let bytes = of.map_or(0, bytes_min);
                bytes.saturating_add(name.to_string().len()).saturating_add(2)
            };
            let members = names.into_iter().flatten().map(member);
            members.fold(2, usize::saturating_add)
        }
        Some("array") => {
            let item = form.get("items").map_or(1, bytes_min).saturating_add(1);
            count("minItems").saturating_mul(item).saturating_add(2)
        }
        Some("string") => count("minLength").saturating_add(2),
        Some("boolean" | "null") => 4,
        Some(_) | None => 1,
    }
}
