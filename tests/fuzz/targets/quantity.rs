//! A quantity that parses prints as one that parses to the same value.

use lockkeeper_api::quantity::Quantity;

pub fn run(text: &str) {
    if let Ok(quantity) = text.parse::<Quantity>() {
        let printed = quantity.to_string();
        assert_eq!(printed.parse(), Ok(quantity), "{text:?} prints {printed:?}");
        assert_eq!(quantity.is_negative(), quantity.nano() < 0);
        if let Some(milli) = quantity.milli_ceil() {
            assert!(quantity.whole_ceil().is_some(), "{text:?} has {milli} milli and no units");
        }
    }
}
