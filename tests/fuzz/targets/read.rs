//! libFuzzer on [`fuzz::read`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::read(data));
