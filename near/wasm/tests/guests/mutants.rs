//! Modules and answers that no person wrote.

use proptest::prelude::*;

use crate::*;

/// Modules are compiled, so they are small, and loops must end soon.
fn limits() -> WasmLimits {
    WasmLimits { fuel_per_byte: 10, ..WasmLimits::default() }
}

fn is_sentence(ran: Result<CollectedOutput, SsdletError>) {
    if let Err(error) = ran {
        let told = error.to_string();
        assert!(!told.is_empty() && !told.contains('\n'), "{told}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn changed_modules_end_with_a_result_or_a_sentence(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        keep in any::<prop::sample::Index>(),
        cut in prop::bool::weighted(0.2),
    ) {
        let body = "(i64.store (i32.const 0) (i64.const 0x200000001)) (call $spans (i32.const 0) (i32.const 1))";
        let mut module = guest(KEYED, body, "");
        for (at, byte) in changes {
            let at = at.index(module.len());
            module[at] = byte;
        }
        if cut {
            module.truncate(keep.index(module.len()));
        }
        is_sentence(run(&module, b"", limits(), &[b"a line\n", b"x\n"]));
    }

    #[test]
    fn answers_at_random_end_with_a_result_or_a_sentence(
        answer in prop::collection::vec(prop_oneof![Just(0u8), 0u8..9, any::<u8>()], 0..64),
        call in prop::sample::select(vec!["emit", "spans", "values"]),
        (at, len) in (prop_oneof![0i32..80, any::<i32>()], prop_oneof![0i32..80, any::<i32>()]),
        output in prop::sample::select(vec![KEYED, ORDERED]),
    ) {
        let escaped: String = answer.iter().map(|byte| format!("\\{byte:02x}")).collect();
        let data = format!("(data (i32.const 0) \"{escaped}\")");
        let body = format!("(call ${call} (i32.const {at}) (i32.const {len}))");
        is_sentence(run(&guest(output, &body, &data), b"", limits(), &[b"a line\n"]));
    }
}
