//! libFuzzer on [`fuzz::node_config`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::node_config(data));
