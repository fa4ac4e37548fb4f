//! Forms of answers. The weights are random, so that nothing but the grammar makes them right.

use std::sync::Arc;

use infer::{
    AnswerError, End, Generated, Grammar, GrammarError, Grammars, Model, Tool, integer_pattern,
};
use serde_json::{Value, json};

use crate::support::{ask, file, generate, model, read, session};

fn grammars(model: &Arc<Model>) -> Grammars {
    Grammars::new(Arc::clone(model)).unwrap()
}

/// Answers of some prompts within a grammar.
fn answers(model: &Arc<Model>, grammar: &Grammar) -> Vec<Generated> {
    let mut session = session(model);
    let prompts =
        ["a", "the other", "{\"name\":", "-5 or 7?", "\u{1f98a}", "on <tool_call> and on"];
    let answer = |text| generate(&mut session, &ask(model, text), 200, Some(grammar)).unwrap();
    prompts.map(answer).into()
}

#[test]
fn an_answer_is_one_of_the_texts() {
    let model = model();
    let texts = ["positive", "negative", "po", "\"quoted\" \\ <|im_end|>\n\u{1f98a}"];
    for count in 1..=texts.len() {
        let texts = &texts[texts.len() - count..];
        for answer in answers(&model, &grammars(&model).one_of(texts).unwrap()) {
            assert!(texts.contains(&answer.text.as_str()), "{answer:?}");
            assert_eq!(answer.end, End::Stop);
        }
    }
}

#[test]
fn texts_are_needed_to_choose_from() {
    let model = model();
    let grammars = grammars(&model);
    assert_eq!(grammars.one_of(&[]).unwrap_err(), GrammarError::NoText);
    assert_eq!(grammars.one_of(&["a", ""]).unwrap_err(), GrammarError::EmptyText { at: 1 });
}

#[test]
fn an_answer_is_a_whole_number_within_the_bounds() {
    let model = model();
    let grammars = grammars(&model);
    for (min, max) in [(1, 10), (-5, 999_999), (-20, -11), (0, 0), (-1, 1), (7_999, 80_000)] {
        let bounds = [min, max].map(|bound: i64| bound.to_string());
        let grammar = grammars.integer(Some(&bounds[0]), Some(&bounds[1])).unwrap();
        for answer in answers(&model, &grammar) {
            let number: i64 = answer.text.parse().unwrap();
            assert!((min..=max).contains(&number), "{number} of {min} to {max}");
            assert_eq!(answer.text, number.to_string(), "the one written form");
            assert_eq!(answer.end, End::Stop);
        }
    }
    for answer in answers(&model, &grammars.integer(None, None).unwrap()) {
        assert!(answer.text.len() <= 78 && answer.end == End::Stop, "{answer:?}");
    }
}

/// The largest numbers of 256 bits, with a sign and without.
const LARGEST: [&str; 2] = [
    "57896044618658097711785492504343953926634992332820282019728792003956564819967",
    "115792089237316195423570985008687907853269984665640564039457584007913129639935",
];

#[test]
fn an_answer_is_values_as_methods_of_agents_have_them() {
    let model = model();
    let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let integers = [
        ("int", integer_pattern(Some(&format!("-{}", LARGEST[0])), Some(LARGEST[0])).unwrap()),
        ("uint", integer_pattern(Some("0"), Some(LARGEST[1])).unwrap()),
        ("small", integer_pattern(Some("-128"), Some("127")).unwrap()),
    ];
    for (name, pattern) in integers {
        for answer in answers(&model, &grammars(&model).json(&text(&pattern)).unwrap()) {
            assert_eq!(answer.end, End::Stop, "{name}: {answer:?}");
            let digits: String = serde_json::from_str(&answer.text).unwrap();
            let magnitude = digits.trim_start_matches('-');
            assert!(magnitude.bytes().all(|byte| byte.is_ascii_digit()), "{name}: {digits}");
            let largest = match name {
                "int" => LARGEST[0],
                "uint" => LARGEST[1],
                _ => "128",
            };
            let is_within = (magnitude.len(), magnitude) <= (largest.len(), largest);
            assert!(is_within, "{name}: {digits}");
        }
    }
    let schema = json!({
        "type": "object",
        "properties": {
            "flags": { "type": "array", "items": { "type": "boolean" }, "minItems": 3, "maxItems": 3 },
            "id": text("^0x([0-9a-f]{2}){4}$"),
            "any": { "type": "array", "items": text("^[0-9]$"), "maxItems": 4 },
            "pair": {
                "type": "object",
                "properties": { "code": text("^0x([0-9a-f]{2}){2}$"), "ok": { "type": "boolean" } },
                "required": ["code", "ok"],
            },
        },
        "required": ["flags", "id", "any", "pair"],
    });
    for answer in answers(&model, &grammars(&model).json(&schema).unwrap()) {
        assert_eq!(answer.end, End::Stop, "{answer:?}");
        let value: Value = serde_json::from_str(&answer.text).unwrap();
        assert_eq!(value["flags"].as_array().unwrap().len(), 3);
        let id = value["id"].as_str().unwrap();
        assert!(id.len() == 10 && id.starts_with("0x"), "{id}");
        assert!(value["any"].as_array().unwrap().iter().all(Value::is_string));
        assert_eq!(value["pair"]["code"].as_str().unwrap().len(), 6);
    }
}

#[test]
fn an_answer_is_json_of_the_schema_and_has_one_written_form() {
    let model = model();
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "maxLength": 8 },
            "age": { "type": "integer", "minimum": 0, "maximum": 150 },
            "kind": { "enum": ["a", "b"] },
            "parts": { "type": "array", "items": { "type": "boolean" }, "maxItems": 3 },
        },
        "required": ["name", "age", "kind", "parts"],
    });
    for answer in answers(&model, &grammars(&model).json(&schema).unwrap()) {
        assert_eq!(answer.end, End::Stop);
        let value: Value = serde_json::from_str(&answer.text).unwrap();
        assert!(value["name"].as_str().unwrap().chars().count() <= 8);
        assert!(value["age"].as_u64().unwrap() <= 150);
        assert!(["a", "b"].contains(&value["kind"].as_str().unwrap()));
        assert!(value["parts"].as_array().unwrap().iter().all(Value::is_boolean));
        assert_eq!(value.as_object().unwrap().len(), 4, "no member that the schema does not name");
        assert!(!answer.text.contains(": ") && !answer.text.contains(", "), "{}", answer.text);
    }
}

#[test]
fn an_answer_calls_a_tool_or_is_text() {
    let model = model();
    let (add, look) = (
        json!({ "type": "object", "properties": { "n": { "type": "integer", "minimum": 0, "maximum": 9 } }, "required": ["n"] }),
        json!({ "type": "object", "properties": { "at": { "$ref": "#/$defs/place" } }, "required": ["at"], "$defs": { "place": { "enum": ["here", "there"] } } }),
    );
    let tools =
        [Tool { name: "add", arguments: &add }, Tool { name: "look \"up\"", arguments: &look }];
    let grammars = grammars(&model);
    for tool in &tools {
        for answer in answers(&model, &grammars.tool_call(tool).unwrap()) {
            assert_eq!(answer.end, End::Stop);
            let call = answer.text.strip_prefix(infer::CALL_START).unwrap();
            let call: Value =
                serde_json::from_str(call.strip_suffix(infer::CALL_END).unwrap()).unwrap();
            assert_eq!(call["name"], tool.name);
            match tool.name {
                "add" => assert!(call["arguments"]["n"].as_u64().unwrap() <= 9),
                _ => {
                    let at = call["arguments"]["at"].as_str().unwrap();
                    assert!(["here", "there"].contains(&at));
                }
            }
        }
    }
    for answer in answers(&model, &grammars.tool_call_or_answer(&tools).unwrap()) {
        let is_call = answer.text.starts_with(infer::CALL_START);
        assert!(is_call || !answer.text.starts_with('<'), "{answer:?}");
    }
}

#[test]
fn a_schema_that_is_not_supported_is_refused_by_name() {
    let model = model();
    let grammars = grammars(&model);
    let good = json!({ "type": "object", "properties": {} });
    for bad in
        [json!({ "not": { "type": "string" } }), json!({ "$ref": "http://example.com/" }), json!(5)]
    {
        let tools =
            [Tool { name: "good", arguments: &good }, Tool { name: "bad", arguments: &bad }];
        let error = grammars.tool_call_or_answer(&tools).unwrap_err();
        assert!(matches!(&error, GrammarError::Schema { of, .. } if of == "bad"), "{error:?}");
    }
    let twice = [Tool { name: "good", arguments: &good }; 2];
    let error = grammars.tool_call_or_answer(&twice).unwrap_err();
    assert_eq!(error, GrammarError::ToolName { name: "good".to_owned() });
}

#[test]
fn a_cut_answer_is_the_beginning_of_the_whole() {
    let model = model();
    let grammar = grammars(&model).one_of(&["a rather long text of many tokens"]).unwrap();
    let answer = generate(&mut session(&model), &ask(&model, "x"), 5, Some(&grammar)).unwrap();
    assert_eq!((answer.end, answer.output_tokens), (End::Length, 5));
    assert!("a rather long text of many tokens".starts_with(&answer.text));
}

#[test]
fn a_grammar_of_another_model_is_refused() {
    let model = model();
    let grammar = grammars(&read(&file(2))).one_of(&["a"]).unwrap();
    let answer = generate(&mut session(&model), &ask(&model, "x"), 5, Some(&grammar));
    assert_eq!(answer.unwrap_err(), AnswerError::ForeignGrammar);
}

#[test]
fn a_sentence_has_no_number_of_its_own() {
    let model = model();
    let text = "balance: 999990000\nsince: 2026-11-22T00:00:00Z";
    for needed in [&[][..], &["999990000"], &["a/b [c]", "2026-11-22T00:00:00Z"]] {
        let grammar = grammars(&model).sentence(text, needed).unwrap();
        for answer in answers(&model, &grammar) {
            // None of them comes to its end: what a whole sentence must have is tested beside the pattern.
            assert_eq!(answer.end, End::Length);
            let mut rest = answer.text.clone();
            for known in ["999990000", "2026-11-22", "00:00:00", "2026"] {
                rest = rest.replace(known, "");
            }
            assert!(!rest.contains(|letter: char| letter.is_ascii_digit()), "{answer:?}");
        }
    }
}

#[test]
fn a_schema_that_refers_a_thousand_times_does_not_overflow_the_stack() {
    let next = |it: u32| json!({ "$ref": format!("#/$defs/a{}", it + 1) });
    let mut chain: serde_json::Map<_, _> =
        (0..1_000).map(|it| (format!("a{it}"), next(it))).collect();
    chain.insert("a1000".to_owned(), json!({ "type": "null" }));
    let model = model();
    let schema = json!({ "$ref": "#/$defs/a0", "$defs": chain });
    for answer in answers(&model, &grammars(&model).json(&schema).unwrap()) {
        assert_eq!(answer.text, "null");
    }
}

#[test]
fn what_the_library_says_when_it_panics_is_one_line() {
    let model = model();
    let schema = json!({ "type": "integer", "minimum": -9.3e18, "maximum": -9.25e18 });
    let error = grammars(&model).json(&schema).unwrap_err();
    let GrammarError::Schema { of, reason } = &error else { panic!("{error}") };
    assert_eq!(of, "answer");
    assert!(reason.starts_with("panic: ") && !reason.contains('\n'), "{reason}");
    let error = AnswerError::Grammar { tokens: 3, reason: "panic: at 0x7f".to_owned() };
    assert_eq!(error.to_string(), "the grammar cannot go on after 3 tokens");
}
