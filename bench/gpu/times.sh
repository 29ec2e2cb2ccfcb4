#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# times.sh [--quick] [BUILD_DIR]: measure the seconds to a model on one GPU, as in the table of docs/gpu.md, twice for each line of the
# table.
#
# Prints a line of JSON for each run: "run" is 1 or 2, "work" names the line of the table. The images are read from MERCER_DATA. --quick
# skips the two lines that take more than a few seconds.
set -u
quick=
if [ "${1:-}" = --quick ]; then
    quick=1
    shift
fi
build=${1:-$(dirname "$0")/../../build}
bench=$build/bench
[ -x "$bench/gpu_epoch" ] || bench=$build
images="--data ${MERCER_DATA:?the folder of images}/fashion-mnist --device cuda --arithmetic fast --kernel laplace:bandwidth=10 --centers all"
model=$(mktemp) || exit 1
trap 'rm -f "$model"' EXIT

# epoch WORK OPTION...: set-up and one epoch of samples in host memory.
epoch() {
    local work=$1
    shift
    "$bench/gpu_epoch" --arithmetic fast --type f16 --d 1280 "$@" | grep '^{' | sed "s/^{/{\"run\": $run, \"work\": \"$work\", /"
}

# command WORK OPTION...: wall time of the whole command mercer train, and its output.
command() {
    local work=$1 start end
    shift
    start=$(date +%s.%N)
    said=$("$build/mercer" train "$@" --json -q -o "$model") || echo "times.sh: $work failed" >&2
    end=$(date +%s.%N)
    printf '{"run": %s, "work": "%s", "command": "mercer train %s", "seconds": %.3f, "said": %s}\n' "$run" "$work" "$*" \
        "$(echo "$end $start" | awk '{ print $1 - $2 }')" "${said:-null}"
}

for run in 1 2; do
    epoch "500,000 samples, 131,072 centers" --n 500000 --p 131072
    epoch "1,000 outputs" --n 200000 --p 65536 --c 1000 --projector pcg
    # shellcheck disable=SC2086 # words
    command "Fashion-MNIST" $images
    [ -n "$quick" ] && continue
    epoch "5,000,000 samples, 1,024,000 centers" --n 5000000 --p 1024000
    # shellcheck disable=SC2086 # words
    command "120 million samples with noise" $images --augment noise:sigma=15 --samples 15000000 -e 8 --solver ep4 --projector bgs
done
