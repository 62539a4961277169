//! Tests of applying a desired state to a host, also if nodeup dies at any moment.
#![cfg(test)]

mod archives;
mod certificates;
mod objects;
mod properties;
mod test_host;
