#!/bin/sh
# Pictures of a report for the documentation: scripts/screenshots.sh report.html docs/images
set -eu
page=$(realpath "$1")
folder=$(realpath "$2")

shoot() {  # name, width, height, further flags
    profile=$(mktemp -d)
    name=$1 width=$2 height=$3
    shift 3
    chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --hide-scrollbars --user-data-dir="$profile" --window-size="$width,$height" "$@" \
        --screenshot="$folder/$name.png" "file://$page" > /dev/null 2>&1
    rm -rf "$profile"
}

shoot report-light 1280 800
shoot report-dark 1280 800 --blink-settings=preferredColorScheme=0
shoot report-phone 390 844
