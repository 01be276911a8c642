#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every fuzzer of tests/fuzz for its share of SECONDS (60), from the inputs of its corpus: tools/scripts/fuzz.sh [SECONDS [NAME]...]
# What libFuzzer finds is kept in build/fuzz/found; add it as a line to tests/fuzz/NAME.corpus so that every run tests it.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:-60}
build=build/fuzz
names=("${@:2}")
if [ ${#names[@]} -eq 0 ]; then
    for source in tests/fuzz/fuzz_*.c; do
        name=$(basename "$source" .c)
        names+=("${name#fuzz_}")
    done
fi
targets=()
for name in "${names[@]}"; do
    targets+=("fuzz_$name" "libfuzz_$name")
done
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_COMPILER=clang -DCLATTN_FUZZ=ON >/dev/null
cmake --build $build --target "${targets[@]}"

share=$((seconds / ${#names[@]}))
[ $share -gt 0 ] || share=1
mkdir -p $build/found
failed=()
for name in "${names[@]}"; do
    inputs=$(mktemp -d)
    $build/tests/"fuzz_$name" "tests/fuzz/$name.corpus" "$inputs"
    log=$build/"$name.log"
    echo "fuzz_$name: $share s"
    if ! ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 $build/tests/"libfuzz_$name" -seed=1 \
        -max_total_time=$share -max_len=4096 -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix=$build/found/"$name-" "$inputs" >"$log" 2>&1; then
        failed+=("$name")
        grep -vE '^#[0-9]+' "$log" | tail -n 40
    fi
    grep -E 'number_of_executed_units|BINGO' "$log" || true
    rm -rf "$inputs"
done
[ ${#failed[@]} -eq 0 ] || printf 'failed: fuzz_%s\n' "${failed[@]}"
exit $((${#failed[@]} > 0))
