//! What protokube said.

use protokube::log::Log;
use serde_json::Value;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    pub fn log(&self) -> Log {
        let lines = Arc::clone(&self.0);
        Log::from_fn(move |line| lines.lock().unwrap().push(line.to_owned()))
    }

    /// Every line as text.
    pub fn text(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }

    /// Every line as JSON.
    pub fn json(&self) -> Vec<Value> {
        let lines = self.0.lock().unwrap();
        let parse = |line: &String| serde_json::from_str(line).unwrap();
        lines.iter().map(parse).collect()
    }
}
