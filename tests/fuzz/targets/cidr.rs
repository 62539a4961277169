//! libFuzzer on [`fuzz::cidr`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::cidr(data));
