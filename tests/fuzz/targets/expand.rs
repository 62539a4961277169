//! libFuzzer on [`fuzz::expand`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::expand(data));
