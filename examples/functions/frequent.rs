// SPDX-License-Identifier: GPL-2.0-or-later
//! frequent.rs -- the most frequent words of the zone: JSON, a list of words and numbers, the most frequent first.
//! Access: read.  Arguments: how many, in decimal digits; 10 if there are none.
mod osd;

use std::collections::HashMap;

fn wanted() -> osd::Result<usize> {
    let text = String::from_utf8(osd::args()).map_err(|_| osd::Error::INVALID)?;
    if text.is_empty() {
        return Ok(10);
    }
    text.trim().parse().map_err(|_| osd::Error::INVALID)
}

fn quoted(word: &str) -> String {
    let escaped: String = word
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{}", c),
            c if c < ' ' => format!("\\u{:04x}", c as u32),
            c => c.to_string(),
        })
        .collect();
    format!("\"{}\"", escaped)
}

fn frequent() -> osd::Result<()> {
    let most = wanted()?;
    let bytes = osd::zone().read_all()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut counts = HashMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word).or_insert(0u64) += 1;
    }
    let mut words: Vec<_> = counts.into_iter().collect();
    words.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let rows: Vec<String> =
        words.iter().take(most).map(|(word, count)| format!("[{}, {}]", quoted(word), count)).collect();
    osd::json(&format!("[{}]", rows.join(", ")))
}

osd::function!(main, crate::frequent);
