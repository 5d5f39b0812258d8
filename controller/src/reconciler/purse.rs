//! What may be spent on news for people.

/// For how many seconds may be saved up: a few dozen after a quiet time are told at once.
const SAVED_SECONDS: u64 = 10;

/// Tokens are counted in thousandths.
const TOKEN: u64 = 1_000;

/// A bucket of tokens, one for each write.
#[derive(Debug, Default)]
pub(super) struct Purse {
    tokens: u64,
    filled_ms: i64,
}

impl Purse {
    /// Whether there is a token left of what was earned until it was looked at last.
    pub(super) const fn has_token(&self) -> bool {
        self.tokens >= TOKEN
    }

    /// Takes a token, if there is one: `per_second` are earned, and after a quiet time there is what was saved up.
    pub(super) fn take(&mut self, now_ms: i64, per_second: u32) -> bool {
        let rate = u64::from(per_second);
        let passed_ms = now_ms.saturating_sub(self.filled_ms).max(0);
        let passed_ms = u64::try_from(passed_ms).unwrap_or(0);
        self.filled_ms = now_ms;
        let most = rate.saturating_mul(SAVED_SECONDS).saturating_mul(TOKEN);
        let earned = passed_ms.saturating_mul(rate);
        self.tokens = self.tokens.saturating_add(earned).min(most);
        let Some(left) = self.tokens.checked_sub(TOKEN) else {
            return false;
        };
        self.tokens = left;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Purse;

    fn taken(purse: &mut Purse, now_ms: i64, per_second: u32) -> usize {
        (0..1_000)
            .take_while(|_| purse.take(now_ms, per_second))
            .count()
    }

    #[test]
    fn it_is_saved_up_for_ten_seconds_and_no_longer() {
        let mut purse = Purse::default();
        let begin_ms = 1_000_000;
        assert_eq!(taken(&mut purse, begin_ms, 5), 50);
        assert_eq!(taken(&mut purse, begin_ms, 5), 0);
        assert_eq!(taken(&mut purse, begin_ms + 1_000, 5), 5);
        assert_eq!(taken(&mut purse, begin_ms + 4_000, 5), 15);
        assert_eq!(taken(&mut purse, begin_ms + 600_000, 5), 50);
    }

    #[test]
    fn nothing_is_earned_at_no_rate() {
        assert_eq!(taken(&mut Purse::default(), 1_000_000, 0), 0);
    }
}
