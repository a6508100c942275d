//! Passes the interpreter configuration (version, GIL) to the code as `cfg` flags.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
