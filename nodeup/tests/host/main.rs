//! What nodeup makes of a machine, and that it may die at any moment of it.
#![cfg(test)]

mod archives;
mod certificates;
mod laws;
mod machine;
mod steps;
