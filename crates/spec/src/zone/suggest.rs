//! Finds the name that a person probably meant.

/// The name nearest to the one that was asked for, if one is near enough to be a slip of the finger.
pub(super) fn nearest(wanted: &str, names: impl Iterator<Item = String>) -> Option<String> {
    if wanted.len() > 64 {
        return None;
    }
    let wanted = wanted.to_ascii_lowercase().replace(' ', "_");
    names
        .filter_map(|name| {
            let lower = name.to_ascii_lowercase();
            let city = lower.rsplit('/').next() == Some(wanted.as_str());
            let distance = if city { 0 } else { edits(&wanted, &lower) };
            (distance <= 1 + wanted.len() / 8).then_some((distance, name))
        })
        .min()
        .map(|(_, name)| name)
}

/// How many letters must be added, dropped, changed or swapped with their neighbour.
fn edits(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows = [Vec::new(), (0..=b.len()).collect::<Vec<usize>>(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        rows[2][0] = i;
        for j in 1..=b.len() {
            let change = rows[1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[1][j] + 1).min(rows[2][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[0][j - 2] + 1);
            }
            rows[2][j] = best;
        }
        rows.rotate_left(1);
        rows[2].resize(b.len() + 1, 0);
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_nonsense_is_not() {
        let names =
            || ["Europe/Berlin", "Europe/London", "America/New_York", "UTC"].map(String::from).into_iter();
        assert_eq!(nearest("Europe/Berln", names()).as_deref(), Some("Europe/Berlin"));
        assert_eq!(nearest("new york", names()).as_deref(), Some("America/New_York"));
        assert_eq!(nearest("Eruope/London", names()).as_deref(), Some("Europe/London"));
        assert_eq!(nearest("UCT", names()).as_deref(), Some("UTC"));
        assert_eq!(nearest("Mars/Olympus", names()), None);
    }
}
