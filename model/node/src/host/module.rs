//! Modules of the kernel.

use serde::Serialize;

/// A module that is loaded, or part of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelModule {
    /// As modprobe knows it.
    pub name: String,
    /// What is there when what it does is: kernels that were built with it do not list it as a module.
    pub sign: String,
}
