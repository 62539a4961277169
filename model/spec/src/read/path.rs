//! Field paths: `spec.subnets[2].cidr`, `spec.nodeLabels["kops.k8s.io/x"]`.

/// The path of a field of the thing at `parent`. Names that hold more than letters, digits, `_`,
/// `-` and `/` are put in brackets and quotes.
pub fn field_path(parent: &str, name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/');
    if name.is_empty() || !name.chars().all(plain) {
        return format!(
            "{parent}[\"{}\"]",
            name.replace('\\', "\\\\").replace('"', "\\\"")
        );
    }
    if parent.is_empty() {
        name.to_owned()
    } else {
        format!("{parent}.{name}")
    }
}

/// The path of an element of the list at `parent`.
pub fn element_path(parent: &str, index: usize) -> String {
    format!("{parent}[{index}]")
}

/// One segment of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathSegment {
    /// A field or a key of a map.
    Field(String),
    /// An element of a list.
    Element(usize),
    /// Every element of a list: `[*]`.
    Each,
}

/// Why a path could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Two dots, or a dot at an end.
    #[error("a field name is missing")]
    EmptyName,
    /// `[` without its `]`.
    #[error("a bracket is not closed")]
    OpenBracket,
    /// Brackets around something that is no number, `*` or quoted key.
    #[error("brackets take a number, * or a key in double quotes")]
    Index,
    /// Something behind `]` other than `.` or `[`.
    #[error("after a bracket comes a dot")]
    AfterBracket,
}

/// The segments of a path. A dot inside a name is written `\.` or the name put in `["..."]`.
pub fn parse(path: &str) -> Result<Vec<PathSegment>, PathError> {
    let mut steps = Vec::new();
    let mut rest = path.chars().peekable();
    let mut after_bracket = false;
    loop {
        match rest.peek() {
            Some('[') => {
                rest.next();
                steps.push(parse_bracket(&mut rest)?);
                after_bracket = true;
            }
            Some('.') if !steps.is_empty() => {
                rest.next();
                steps.push(PathSegment::Field(parse_name(&mut rest)?));
                after_bracket = false;
            }
            Some(_) if after_bracket => return Err(PathError::AfterBracket),
            Some(_) if steps.is_empty() => steps.push(PathSegment::Field(parse_name(&mut rest)?)),
            Some(_) => return Err(PathError::EmptyName),
            None if steps.is_empty() => return Err(PathError::EmptyName),
            None => return Ok(steps),
        }
    }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn parse_name(rest: &mut Chars<'_>) -> Result<String, PathError> {
    let mut name = String::new();
    while let Some(c) = rest.next_if(|c| !matches!(c, '.' | '[')) {
        name.push(if c == '\\' {
            rest.next().unwrap_or(c)
        } else {
            c
        });
    }
    if name.is_empty() {
        Err(PathError::EmptyName)
    } else {
        Ok(name)
    }
}

fn parse_bracket(rest: &mut Chars<'_>) -> Result<PathSegment, PathError> {
    if rest.next_if_eq(&'"').is_some() {
        let mut key = String::new();
        loop {
            match rest.next().ok_or(PathError::OpenBracket)? {
                '"' => break,
                '\\' => key.push(rest.next().ok_or(PathError::OpenBracket)?),
                c => key.push(c),
            }
        }
        return match rest.next() {
            Some(']') => Ok(PathSegment::Field(key)),
            _ => Err(PathError::OpenBracket),
        };
    }
    let mut inside = String::new();
    loop {
        match rest.next().ok_or(PathError::OpenBracket)? {
            ']' => break,
            c => inside.push(c),
        }
    }
    if inside == "*" {
        return Ok(PathSegment::Each);
    }
    inside
        .parse()
        .map(PathSegment::Element)
        .map_err(|_| PathError::Index)
}

#[cfg(test)]
mod tests {
    use super::{PathError, PathSegment, element_path, field_path, parse};
    use proptest::prelude::*;

    fn step() -> impl Strategy<Value = PathSegment> {
        prop_oneof![
            any::<String>().prop_map(PathSegment::Field),
            any::<usize>().prop_map(PathSegment::Element)
        ]
    }

    proptest! {
        #[test]
        fn a_path_written_down_is_read_back(first in "[a-z]{1,8}", rest in prop::collection::vec(step(), 0..5)) {
            let mut steps = vec![PathSegment::Field(first)];
            steps.extend(rest);
            let path = steps.iter().fold(String::new(), |path, step| match step {
                PathSegment::Field(name) => field_path(&path, name),
                PathSegment::Element(index) => element_path(&path, *index),
                PathSegment::Each => path,
            });
            prop_assert_eq!(parse(&path), Ok(steps));
        }

        #[test]
        fn any_text_is_a_path_or_an_error(text in ".*") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn dots_in_names_can_be_escaped() {
        let wanted = vec![
            PathSegment::Field("a".into()),
            PathSegment::Field("b.c".into()),
            PathSegment::Each,
        ];
        assert_eq!(parse(r"a.b\.c[*]"), Ok(wanted));
    }

    #[test]
    fn broken_paths_are_refused() {
        let errors = [
            ("", PathError::EmptyName),
            ("a..b", PathError::EmptyName),
            ("a.", PathError::EmptyName),
            ("a[0", PathError::OpenBracket),
            ("a[x]", PathError::Index),
            ("a[0]b", PathError::AfterBracket),
        ];
        for (path, error) in errors {
            assert_eq!(parse(path), Err(error), "{path}");
        }
    }
}
