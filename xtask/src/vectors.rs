//! Makes the recorded answers of other schedulers anew; the scripts stand beside the vectors.

use std::fs::File;

use anyhow::Result;

use crate::run::{self, command, provide, python, root};

/// The second library that must agree about Quartz terms.
const SECOND_OPINION: &str = "croner@11.0.0";

pub fn run() -> Result<()> {
    let folder = root().join("crates/spec/tests/vectors");
    let requirements = folder.join("requirements.txt");
    let python = python("vectors-python", &["-r", &requirements.to_string_lossy()])?;
    let node = root().join("target/vectors-node");
    provide(&["npm"], "npm")?;
    run::run(
        command("npm").args(["install", "--silent", "--no-fund", "--prefix"]).arg(&node).arg(SECOND_OPINION),
    )?;
    for name in ["unix", "quartz", "temporal"] {
        eprintln!("asking for {name}.json");
        // Written beside and then moved, so that a failing script leaves the old answers.
        let fresh = folder.join(format!("{name}.json.new"));
        run::run(
            command(&python.to_string_lossy())
                .arg(folder.join(format!("{name}.py")))
                .env("NODE_PATH", node.join("node_modules"))
                .stdout(File::create(&fresh)?),
        )?;
        std::fs::rename(&fresh, folder.join(format!("{name}.json")))?;
    }
    Ok(())
}
