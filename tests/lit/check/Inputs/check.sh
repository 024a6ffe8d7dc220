# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check.sh TOOL PROLOGUE CASE [OPTION...]: `TOOL check` of the two files as one
# program on standard input, then the exit code, all on standard output.
tool=$1 prologue=$2 case=$3
shift 3
cat "$prologue" "$case" | "$tool" check - "$@" 2>&1
echo "exit=$?"
