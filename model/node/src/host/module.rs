//! Kernel modules.

use serde::Serialize;

/// A module that is loaded or built into the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelModule {
    pub name: String,
    /// A path that exists when the module's function is available. Kernels with the module built in do not list it as a module.
    pub sign: String,
}
