//! Chooses code for the processor's vector instructions at run time.
//!
//! A kernel is a type with an inlined method `run::<FMA>`. The compiler vectorizes it twice: for
//! every processor of the architecture, and for those with 256-bit vectors and fused products.

/// A computation that is compiled for several instruction sets.
pub(crate) trait Kernel {
    type Output;

    fn run<const FMA: bool>(self) -> Self::Output;
}

/// Runs a kernel with the best instructions of this processor.
#[cfg(target_arch = "x86_64")]
pub(crate) fn run<K: Kernel>(kernel: K) -> K::Output {
    if std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("fma")
        && std::is_x86_feature_detected!("bmi1")
        && std::is_x86_feature_detected!("bmi2")
        && std::is_x86_feature_detected!("lzcnt")
        && std::is_x86_feature_detected!("popcnt")
    {
        // SAFETY: the processor has these instructions.
        unsafe { run_avx2(kernel) }
    } else {
        kernel.run::<false>()
    }
}

/// Runs a kernel with the best instructions of this processor.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn run<K: Kernel>(kernel: K) -> K::Output {
    // AArch64 always has fused products.
    if cfg!(target_arch = "aarch64") { kernel.run::<true>() } else { kernel.run::<false>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<true>()
}
