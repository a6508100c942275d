//! Chooses code for the processor's vector instructions at run time.
//!
//! A kernel is a type with an inlined method `run::<FMA>`. The compiler vectorizes it for every
//! processor of the architecture, and for those with vectors of 256 and of 512 bits. Closures are
//! compiled without these instructions, so kernels have none in their loops.

/// A computation that is compiled for several instruction sets.
pub(crate) trait Kernel {
    type Output;

    /// `FMA` says that fused products take one instruction.
    fn run<const FMA: bool>(self) -> Self::Output;
}

/// Defines the instruction sets, and `run`, which chooses among them.
#[cfg(target_arch = "x86_64")]
macro_rules! instruction_sets {
    ($($name:ident: $list:literal, [$($feature:tt),*];)*) => {
        /// Runs a kernel with the best instructions of this processor.
        pub(crate) fn run<K: Kernel>(kernel: K) -> K::Output {
            $(if $(std::is_x86_feature_detected!($feature))&&* {
                // SAFETY: the processor has these instructions.
                return unsafe { $name(kernel) };
            })*
            kernel.run::<false>()
        }

        $(#[target_feature(enable = $list)]
        fn $name<K: Kernel>(kernel: K) -> K::Output {
            kernel.run::<true>()
        })*
    };
}

#[cfg(target_arch = "x86_64")]
instruction_sets! {
    run_avx512: "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt", [
        "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "bmi1", "bmi2", "lzcnt",
        "popcnt"
    ];
    run_avx2: "avx2,fma,bmi1,bmi2,lzcnt,popcnt", [
        "avx2", "fma", "bmi1", "bmi2", "lzcnt", "popcnt"
    ];
}

/// Runs a kernel with the best instructions of this processor.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn run<K: Kernel>(kernel: K) -> K::Output {
    // AArch64 always has fused products.
    if cfg!(target_arch = "aarch64") { kernel.run::<true>() } else { kernel.run::<false>() }
}
