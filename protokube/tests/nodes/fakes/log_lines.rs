//! Collects log lines.

use protokube_role::log::Log;
use serde_json::Value;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
pub struct LogLines(Arc<Mutex<Vec<String>>>);

impl LogLines {
    pub fn new_log(&self) -> Log {
        let lines = Arc::clone(&self.0);
        Log::from_fn(move |line| lines.lock().unwrap().push(line.to_owned()))
    }

    /// All lines in one text.
    pub fn all_text(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }

    /// Every line as JSON.
    pub fn json_lines(&self) -> Vec<Value> {
        let lines = self.0.lock().unwrap();
        let parse = |line: &String| serde_json::from_str(line).unwrap();
        lines.iter().map(parse).collect()
    }
}
