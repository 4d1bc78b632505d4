//! Makes the shared object that `src/xstate.rs` contains.

use std::{env, path::PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=src/xstate.c");
    let object = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("xstate.so");
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("x86_64") {
        // Only these processors have the state.
        std::fs::write(object, []).expect("the directory of the build is writable");
        return;
    }
    let mut compile = cc::Build::new().opt_level(2).pic(true).get_compiler().to_command();
    compile.args(["-shared", "-nostdlib", "-fno-stack-protector", "-o"]).arg(&object).arg("src/xstate.c");
    let status = compile.status().expect("the C compiler starts");
    assert!(status.success(), "the C compiler failed: {compile:?}");
}
