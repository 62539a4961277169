//! A document as a tree that remembers where each part stands and how each scalar was written.

/// Where something stands in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Line, from 1; 0 for what comes from no text.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Characters; 0 for collections.
    pub width: usize,
}

/// A part of a document.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub content: Content,
    pub span: Span,
}

/// What a part is.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Scalar(Scalar),
    List(Vec<Node>),
    /// Entries in the order of the text; keys may repeat.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    pub key_span: Span,
    pub value: Node,
}

/// A scalar: its text and what YAML takes it for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool, String),
    Int(i128, String),
    Float(f64, String),
    Text(String),
    /// Text from a command line: becomes what its field wants.
    Assigned(String),
}

impl Scalar {
    /// The scalar as it was written; empty for null.
    pub fn text(&self) -> &str {
        match self {
            Self::Null => "",
            Self::Bool(_, text)
            | Self::Int(_, text)
            | Self::Float(_, text)
            | Self::Text(text)
            | Self::Assigned(text) => text,
        }
    }
}

impl Node {
    /// A scalar that comes from no text.
    pub fn from_scalar(scalar: Scalar) -> Self {
        Self {
            content: Content::Scalar(scalar),
            span: Span::default(),
        }
    }

    /// True for an explicit or implied null.
    pub fn is_null(&self) -> bool {
        matches!(self.content, Content::Scalar(Scalar::Null))
    }

    /// The first value of a key, if this is a mapping.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.content {
            Content::Map(entries) => entries
                .iter()
                .find(|entry| entry.key == key)
                .map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The text of a key's scalar.
    pub fn get_text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.content {
            Content::Scalar(scalar) => Some(scalar.text()),
            _ => None,
        }
    }

    /// What this is, for messages.
    pub fn kind_text(&self) -> String {
        match &self.content {
            Content::Scalar(Scalar::Null) => "nothing".to_owned(),
            Content::Scalar(Scalar::Text(text)) => quote_text(text),
            Content::Scalar(scalar) => scalar.text().to_owned(),
            Content::List(_) => "a list".to_owned(),
            Content::Map(_) => "a mapping".to_owned(),
        }
    }
}

/// Text in quotes, cut if long.
pub(crate) fn quote_text(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        return format!("\"{text}\"");
    }
    let start: String = text.chars().take(LONGEST).collect();
    format!("\"{start}...\"")
}

/// A JSON value as a tree, for fields that are set without a file.
impl From<&serde_json::Value> for Node {
    fn from(value: &serde_json::Value) -> Self {
        use serde_json::Value;
        let content = match value {
            Value::Null => Content::Scalar(Scalar::Null),
            Value::Bool(value) => Content::Scalar(Scalar::Bool(*value, value.to_string())),
            Value::Number(number) => Content::Scalar(scalar_of(number)),
            Value::String(text) => Content::Scalar(Scalar::Text(text.clone())),
            Value::Array(values) => Content::List(values.iter().map(Self::from).collect()),
            Value::Object(fields) => Content::Map(
                fields
                    .iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        key_span: Span::default(),
                        value: Self::from(value),
                    })
                    .collect(),
            ),
        };
        Self {
            content,
            span: Span::default(),
        }
    }
}

fn scalar_of(number: &serde_json::Number) -> Scalar {
    let integer = number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from));
    match (integer, number.as_f64()) {
        (Some(integer), _) => Scalar::Int(integer, number.to_string()),
        (None, Some(float)) => Scalar::Float(float, number.to_string()),
        (None, None) => Scalar::Text(number.to_string()),
    }
}
