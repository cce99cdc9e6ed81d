//! Links in Markdown lead somewhere.

use std::path::Path;

pub(super) fn faults(root: &Path, path: &Path, text: &str) -> Vec<String> {
    let folder = root.join(path).parent().map(Path::to_path_buf).unwrap_or_default();
    let mut faults = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for target in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let elsewhere = file.is_empty() || target.contains("://");
            if !elsewhere && !folder.join(file).exists() {
                faults.push(format!("{}:{}: link to `{target}` leads nowhere", path.display(), number + 1));
            }
        }
    }
    faults
}
