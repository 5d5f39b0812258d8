//! Keeps the pod templates of jobs as text, up to a number of bytes.

use crate::key::JobKey;
use std::collections::BTreeMap;

/// The texts of the pod templates of jobs, as their users wrote them. When they exceed the limit, the oldest are
/// removed: the job is read again when its text is needed.
///
/// A workload is created from the text, and a `JobSet` is started with it. After that it is rarely needed, and the
/// texts of all jobs would take most of the memory.
#[derive(Debug)]
pub(super) struct TemplateTexts {
    texts: BTreeMap<JobKey, TemplateText>,
    /// The jobs by the age of their texts.
    by_age: BTreeMap<u64, JobKey>,
    /// The bytes of all texts.
    bytes: usize,
    bytes_max: usize,
    next: u64,
}

#[derive(Debug)]
struct TemplateText {
    age: u64,
    text: Box<str>,
}

impl TemplateTexts {
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self {
            texts: BTreeMap::new(),
            by_age: BTreeMap::new(),
            bytes: 0,
            bytes_max,
            next: 0,
        }
    }

    pub(super) fn get(&self, key: &JobKey) -> Option<&str> {
        self.texts.get(key).map(|it| &*it.text)
    }

    /// Stores the text of a job, and removes the oldest other texts beyond the limit. The newest text is kept whatever
    /// its size, so that the write that it was read for can be built.
    pub(super) fn insert(&mut self, key: &JobKey, text: Box<str>) {
        self.remove(key);
        let age = self.next;
        self.next = age.saturating_add(1);
        self.bytes = self.bytes.saturating_add(text.len());
        self.by_age.insert(age, key.clone());
        self.texts.insert(key.clone(), TemplateText { age, text });
        while self.bytes > self.bytes_max
            && self.by_age.len() > 1
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.remove(&oldest);
        }
    }

    pub(super) fn remove(&mut self, key: &JobKey) {
        if let Some(removed) = self.texts.remove(key) {
            self.by_age.remove(&removed.age);
            self.bytes = self.bytes.saturating_sub(removed.text.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TemplateTexts;
    use crate::key::{JobKey, ObjectKey};

    fn key(name: &str) -> JobKey {
        JobKey {
            kind: 0,
            name: ObjectKey::new("n", name),
        }
    }

    fn kept(texts: &TemplateTexts) -> String {
        let all = ["a", "b", "c"];
        let kept = all.iter().filter(|it| texts.get(&key(it)).is_some());
        kept.copied().collect()
    }

    #[test]
    fn oldest_text_is_removed_beyond_the_limit() {
        let mut texts = TemplateTexts::new(10);
        texts.insert(&key("a"), "12345".into());
        texts.insert(&key("b"), "12345".into());
        assert_eq!(kept(&texts), "ab");
        // A text that is stored again is the newest.
        texts.insert(&key("a"), "1234".into());
        texts.insert(&key("c"), "12".into());
        assert_eq!(kept(&texts), "ac");
        texts.remove(&key("a"));
        texts.insert(&key("b"), "12345678".into());
        assert_eq!(kept(&texts), "bc");
        assert_eq!((texts.bytes, texts.by_age.len()), (10, 2));
    }

    #[test]
    fn newest_text_is_kept_whatever_its_size() {
        let mut texts = TemplateTexts::new(0);
        texts.insert(&key("a"), "1".into());
        texts.insert(&key("b"), "12345".into());
        assert_eq!(kept(&texts), "b");
        texts.remove(&key("b"));
        assert_eq!((texts.bytes, kept(&texts).as_str()), (0, ""));
    }
}
