#!/usr/bin/env bash
# Words that a newcomer stumbles over, in comments, messages and docs: fails with file and line and says what to write.
#
#   scripts/words.sh [FILE...]      all tracked sources, docs and scripts without arguments
set -euo pipefail
cd "$(dirname "$0")/.."

# ALGORITHMS.md and CONFORMANCE.md are written from sources that are covered.
not_covered="^(docs/(ALGORITHMS|CONFORMANCE)\.md|scripts/words\.sh)\$"

if [ $# -gt 0 ]; then
    files=("$@")
else
    mapfile -t files < <(git ls-files -- '*.rs' '*.md' '*.sh' '*.py' '*.toml' '*.c' justfile .ci/run .ci/part |
        grep -vE "$not_covered")
    [ ${#files[@]} -gt 100 ] || { echo "words.sh: git lists ${#files[@]} files only"; exit 1; }
fi

found=0
# look PATTERN ADVICE [SUFFIX]: reports every line with the pattern, in files with that suffix only if one is given.
look() {
    local chosen=("${files[@]}") hits
    if [ -n "${3:-}" ]; then
        mapfile -t chosen < <(printf '%s\n' "${files[@]}" | grep -E "$3" || true)
    fi
    [ ${#chosen[@]} -gt 0 ] || return 0
    hits=$(grep -nHP "$1" -- "${chosen[@]}" || true)
    [ -n "$hits" ] || return 0
    printf '%s\n' "$hits" | cut -c 1-200
    printf '    ^ %s\n' "$2"
    found=$((found + $(wc -l <<<"$hits")))
}

look '(\b|_)[Tt]old(\b|_)' 'say who learns what: "the peer learns", "is reported", "by default", "cannot be distinguished"'
look '(\b|_)([Nn]obody|[Ss]omebody|[Ee]verybody)(\b|_)' 'name it: no peer, no thread, no reader, the user, an attacker'
look '\b([Ss]tands? in|[Ss]tood in)\b' 'say "is in", "is part of", "replaces"'
look '^\s*(//[/!]?|#|/?\*) The same\b' 'say what it is: "[`poll`] for one chunk" and not "The same for one chunk"'
look '^\s*//[/!] [A-Z][a-z]+\.$' 'one word says no more than the name: "Time the packet left." and not "When."' '\.rs$'
look '\b[Ss]tands? behind\b' 'say "follows", "is behind"'
look '\bP[0-4](.s)? (§|eq\.)' 'cite author, year and section; docs/papers/ has a page for each paper' '\.rs$'
look '[Oo]ur specification|\bbaselines B[0-9]' 'cite author, year and section; docs/papers/ has a page for each paper'

if [ "$found" -gt 0 ]; then
    echo "$found lines"
    exit 1
fi
