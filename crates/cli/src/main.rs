//! The `senesce` program: the command line of the laboratory. The engines are in senesce-fs.

fn main() -> std::process::ExitCode {
    senesce_cli::run_program(&senesce_cli::Beside, std::env::args_os())
}
