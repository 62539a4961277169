//! The JSON Schema of spec files (draft 2020-12), for editors and for checks without kctl. It takes what the reader takes, and refuses
//! what the reader refuses: unknown fields, values of another type, words that are no choice, and what kctl refuses by name.
//!
//! It has only keywords that draft 7 has too, which is what language servers of YAML know.

use crate::api::API_VERSIONS;
use crate::api::shape::{SectionField, Shape};
use crate::api::unsupported::When;
use crate::field::{Field, objects};
use serde_json::{Map, Value, json};

/// A schema, or a part of one.
type Schema = Map<String, Value>;

/// The schema of objects of one kind, or of all kinds that a spec file may hold.
pub fn json_schema(kind: Option<&str>) -> Value {
    let mut objects = Vec::from(objects());
    objects.retain(|object| kind.is_none_or(|kind| object.name == kind));
    let kinds: Vec<&str> = objects.iter().map(|object| object.name.as_str()).collect();
    let cases: Vec<Value> = kinds.iter().map(|kind| match_kind(kind)).collect();
    let objects = objects.iter();
    let mut definitions: Schema = objects
        .map(|object| (object.name.clone(), object_schema(object)))
        .collect();
    definitions.insert(USED.to_owned(), define_used());
    definitions.insert(ANY.to_owned(), define_any());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Objects of kctl's spec files",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {
            "apiVersion": { "enum": API_VERSIONS },
            "kind": { "enum": kinds },
        },
        "allOf": cases,
        "$defs": definitions,
    })
}

/// What holds for objects of a kind.
fn match_kind(kind: &str) -> Value {
    json!({
        "if": { "properties": { "kind": { "const": kind } }, "required": ["kind"] },
        "then": { "$ref": format!("#/$defs/{kind}") },
    })
}

fn object_schema(object: &Field) -> Value {
    let mut properties = properties_of(object);
    // Of these, letters count as they are written.
    set_keyword(&mut properties, "apiVersion", "enum", json!(API_VERSIONS));
    set_keyword(&mut properties, "kind", "const", json!(object.name));
    // What the reader asks of every object: a name.
    set_keyword(&mut properties, "metadata", "type", json!("object"));
    set_keyword(&mut properties, "metadata", "required", json!(["name"]));
    let metadata = properties
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("properties"));
    if let Some(Value::Object(metadata)) = metadata {
        let scalar = json!(["string", "number", "boolean"]);
        set_keyword(metadata, "name", "type", scalar);
        set_keyword(metadata, "name", "minLength", json!(1));
    }
    json!({
        "description": object.description,
        "type": "object",
        "additionalProperties": false,
        "required": ["apiVersion", "kind", "metadata"],
        "properties": properties,
    })
}

/// Sets a keyword of a property.
fn set_keyword(properties: &mut Schema, name: &str, keyword: &str, value: Value) {
    if let Some(Value::Object(schema)) = properties.get_mut(name) {
        schema.insert(keyword.to_owned(), value);
    }
}

fn properties_of(field: &Field) -> Schema {
    let fields = field.fields.iter();
    fields
        .map(|field| (field.name.clone(), field_schema(field)))
        .collect()
}

fn field_schema(field: &Field) -> Value {
    let mut schema = value_schema(field.shape, field);
    let told = std::iter::once(field.description.clone()).chain(field.notes());
    let told: Vec<String> = told.collect();
    schema.insert("description".to_owned(), json!(told.join(" ")));
    let refusals = field.refusals.iter();
    let refusals: Vec<_> = refusals.filter(|one| !one.is_dropped_by_kops()).collect();
    if !refusals.is_empty() {
        let uses: Vec<Value> = refusals.iter().map(|one| match_use(one.when())).collect();
        let messages: Vec<String> = refusals.iter().map(|one| one.message()).collect();
        schema.insert("not".to_owned(), json!({ "anyOf": uses }));
        // What language servers show in the place of their own words.
        schema.insert("errorMessage".to_owned(), json!(messages.join(". ")));
    }
    Value::Object(schema)
}

/// What is valid for a value of this shape.
fn value_schema(shape: Shape, field: &Field) -> Schema {
    let schema = match shape {
        Shape::Bool => json!({ "type": ["boolean"] }),
        Shape::Int(least, most) => {
            json!({ "type": ["integer"], "minimum": least, "maximum": most })
        }
        Shape::Text => text_schema(field),
        Shape::IntOrText => json!({ "type": ["integer", "string", "boolean"] }),
        // Editors offer the words of an enum.
        Shape::Choice(words) => json!({
            "type": ["string"],
            "anyOf": [{ "enum": words }, { "pattern": any_case(words) }],
        }),
        // What kOps drops is dropped before anything in it is read.
        Shape::Anything if field.refusals.iter().any(|one| one.is_dropped_by_kops()) => json!({}),
        Shape::Anything => json!({ "allOf": [{ "$ref": format!("#/$defs/{ANY}") }] }),
        Shape::Optional(of) => return or_null(value_schema(of(), field)),
        Shape::List(of) => {
            let elements = without_null(value_schema(of(), field));
            json!({ "type": ["array", "null"], "items": elements })
        }
        Shape::Map(of) => json!({
            "type": ["object", "null"],
            "additionalProperties": value_schema(of(), field),
        }),
        Shape::Section(section) => json!({
            "type": ["object", "null"],
            "additionalProperties": section.fields.iter().any(SectionField::is_flattened),
            "properties": properties_of(field),
        }),
    };
    match schema {
        Value::Object(schema) => schema,
        _ => Schema::new(),
    }
}

/// Any scalar: the reader takes its text.
fn text_schema(field: &Field) -> Value {
    let types = json!(["string", "number", "boolean", "null"]);
    match field.choices() {
        choices if choices.is_empty() => json!({ "type": types }),
        // Validation refuses others, and says why.
        choices => json!({ "type": types, "examples": choices }),
    }
}

fn or_null(mut schema: Schema) -> Schema {
    let null = json!("null");
    if let Some(Value::Array(types)) = schema.get_mut("type")
        && !types.contains(&null)
    {
        types.push(null);
    }
    schema
}

/// Of an element of a list: the reader takes no null there.
fn without_null(mut schema: Schema) -> Schema {
    match schema.get_mut("type") {
        Some(Value::Array(types)) => types.retain(|one| one != "null"),
        _ => _ = schema.insert("not".to_owned(), json!({ "type": "null" })),
    }
    schema
}

/// A pattern of words in any case.
fn any_case(words: &[&str]) -> String {
    let letter = |letter: char| match letter.is_ascii_alphabetic() {
        true => format!(
            "[{}{}]",
            letter.to_ascii_uppercase(),
            letter.to_ascii_lowercase()
        ),
        false => letter.to_string(),
    };
    let words: Vec<String> = words
        .iter()
        .map(|word| word.chars().map(letter).collect())
        .collect();
    format!("^({})$", words.join("|"))
}

/// Name of the definition of anything.
const ANY: &str = "any";

/// Anything, but null in a list.
fn define_any() -> Value {
    let this = json!({ "$ref": format!("#/$defs/{ANY}") });
    json!({
        "items": { "allOf": [this], "not": { "type": "null" } },
        "additionalProperties": this,
    })
}

/// Name of the definition of what counts as used.
const USED: &str = "used";

/// As `When::Set`: not false, not empty, not switched off.
fn define_used() -> Value {
    let off = json!({ "properties": { "enabled": { "const": false } }, "required": ["enabled"] });
    json!({
        "anyOf": [
            { "const": true },
            { "type": "number" },
            { "type": "string", "minLength": 1 },
            { "type": "array", "minItems": 1 },
            { "type": "object", "minProperties": 1, "not": off },
        ],
    })
}

/// The values with which a listed field counts as used.
fn match_use(when: When) -> Value {
    match when {
        When::Present => json!({ "type": ["boolean", "number", "string", "array", "object"] }),
        When::Set => json!({ "$ref": format!("#/$defs/{USED}") }),
        When::Is(word) => {
            let text = json!({ "type": "string", "pattern": any_case(&[word]) });
            match word.parse::<bool>() {
                Ok(value) => json!({ "anyOf": [{ "const": value }, text] }),
                Err(_) => text,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::json_schema;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    /// Keywords of draft 7 that mean the same in draft 2020-12, and one that language servers read.
    const KEYWORDS: [&str; 23] = [
        "$defs",
        "$ref",
        "$schema",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "description",
        "enum",
        "errorMessage",
        "examples",
        "if",
        "items",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "not",
        "pattern",
        "then",
        "title",
        "type",
    ];

    /// Adds the keywords of a schema and of all schemas in it.
    fn collect_keywords(schema: &Value, into: &mut BTreeSet<String>) {
        match schema {
            Value::Object(keywords) => {
                for (keyword, value) in keywords {
                    match (keyword.as_str(), value) {
                        ("properties" | "$defs", Value::Object(schemas)) => {
                            schemas.values().for_each(|one| collect_keywords(one, into));
                        }
                        ("const" | "enum" | "examples" | "required", _) => {}
                        _ => collect_keywords(value, into),
                    }
                    into.insert(keyword.clone());
                }
            }
            Value::Array(schemas) => schemas.iter().for_each(|one| collect_keywords(one, into)),
            _ => {}
        }
    }

    #[test]
    fn every_keyword_is_one_that_editors_know() {
        let mut used = BTreeSet::new();
        collect_keywords(&json_schema(None), &mut used);
        let known = KEYWORDS.iter().chain(&["properties", "required"]);
        let known: BTreeSet<String> = known.map(|one| (*one).to_owned()).collect();
        assert_eq!(used, known);
    }

    #[test]
    fn a_schema_of_one_kind_has_no_other() {
        let schema = json_schema(Some("InstanceGroup"));
        assert_eq!(
            schema["properties"]["kind"]["enum"],
            json!(["InstanceGroup"])
        );
        assert!(schema["$defs"]["Cluster"].is_null());
        let role = &schema["$defs"]["InstanceGroup"]["properties"]["spec"]["properties"]["role"];
        assert_eq!(role["type"], json!(["string", "null"]));
        assert!(role["description"].as_str().unwrap().contains("APIServer"));
    }
}
