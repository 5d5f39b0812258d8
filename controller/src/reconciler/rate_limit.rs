//! What may be spent on news for people.

/// For how many seconds may be saved up: a few dozen after a quiet time are told at once.
const BURST_SECONDS: u64 = 10;

/// Tokens are counted in thousandths.
const TOKEN: u64 = 1_000;

/// A bucket of tokens, one for each write.
#[derive(Debug, Default)]
pub(super) struct TokenBucket {
    millitokens: u64,
    refilled_at_ms: i64,
}

impl TokenBucket {
    /// Whether there is a token left of what was earned until it was looked at last.
    pub(super) const fn has_token(&self) -> bool {
        self.millitokens >= TOKEN
    }

    /// Takes a token, if there is one: `per_second` are earned, and after a quiet time there is what was saved up.
    pub(super) fn try_take(&mut self, now_ms: i64, per_second: u32) -> bool {
        let rate = u64::from(per_second);
        let passed_ms = now_ms.saturating_sub(self.refilled_at_ms).max(0);
        let passed_ms = u64::try_from(passed_ms).unwrap_or(0);
        self.refilled_at_ms = now_ms;
        let most = rate.saturating_mul(BURST_SECONDS).saturating_mul(TOKEN);
        let earned = passed_ms.saturating_mul(rate);
        self.millitokens = self.millitokens.saturating_add(earned).min(most);
        let Some(left) = self.millitokens.checked_sub(TOKEN) else {
            return false;
        };
        self.millitokens = left;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::TokenBucket;

    fn take_all(purse: &mut TokenBucket, now_ms: i64, per_second: u32) -> usize {
        (0..1_000)
            .take_while(|_| purse.try_take(now_ms, per_second))
            .count()
    }

    #[test]
    fn token_bucket_after_idle_time_holds_ten_seconds_of_tokens() {
        let mut purse = TokenBucket::default();
        let begin_ms = 1_000_000;
        assert_eq!(take_all(&mut purse, begin_ms, 5), 50);
        assert_eq!(take_all(&mut purse, begin_ms, 5), 0);
        assert_eq!(take_all(&mut purse, begin_ms + 1_000, 5), 5);
        assert_eq!(take_all(&mut purse, begin_ms + 4_000, 5), 15);
        assert_eq!(take_all(&mut purse, begin_ms + 600_000, 5), 50);
    }

    #[test]
    fn token_bucket_at_zero_rate_stays_empty() {
        assert_eq!(take_all(&mut TokenBucket::default(), 1_000_000, 0), 0);
    }
}
