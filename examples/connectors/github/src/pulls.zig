//! Pull requests: what a merge would bring (commits, files, checks), and merging.

const std = @import("std");
const connector = @import("connector");
const github = @import("github.zig");
const Buffer = connector.Buffer;
const Context = connector.Context;
const OpError = connector.OpError;
const Record = github.Record;
const Value = connector.Value;
const member = connector.member;
const string = connector.string;

/// GitHub lists no more of a pull request.
const most_commits = 250;
const most_files = 3000;
const most_checks = 1000;
/// What a person's screen takes of one text.
const most_diff_bytes = 600_000;
const most_diff_lines = 12_000;
const merge_tries = 3;

pub fn getPull(context: *Context) OpError!Value {
    const url = try github.repositoryUrl(context);
    const number = try github.required(context, "number");
    const place = try github.repository(context, url);
    const pull_url = try github.concat(context, &.{ url, "/pulls/", number });
    var pull = try context.ask("GET", pull_url, null);
    // GitHub works out in the background whether a merge would conflict, and says null meanwhile.
    var tries: usize = 1;
    while (tries < merge_tries and isOpen(pull) and (member(pull, "mergeable") orelse .null) == .null) : (tries += 1) {
        connector.wait(800);
        pull = try context.ask("GET", pull_url, null);
    }
    const head = member(pull, "head") orelse .null;
    const sha = string(head, "sha") orelse return github.unexpected(context, "a pull request");
    const commits = try github.list(context, try github.concat(context, &.{ pull_url, "/commits" }), most_commits);
    const files = try github.list(context, try github.concat(context, &.{ pull_url, "/files" }), most_files);

    var out: Record = .{ .context = context };
    try out.text("repository", place.line);
    try out.copy(pull, &.{ "number", "title", "body", "html_url" });
    try out.text("state", state(pull));
    try out.text("author", github.login(pull, "user"));
    try out.put("base", member(member(pull, "base") orelse .null, "ref"));
    try out.put("head", member(head, "label"));
    try out.text("head_sha", sha);
    try out.text("conflicts", conflicts(pull));
    try out.text("summary", try summary(context, pull));
    try out.text("commits", try github.commitsText(context, commits, github.count(pull, "commits")));
    try out.text("files", try filesText(context, files, github.count(pull, "changed_files")));
    try out.text("diff", try diffText(context, files));
    try out.text("checks", try checksText(context, url, sha));
    return out.done();
}

/// Merges exactly the commit `sha`: GitHub refuses with 409 where the branch has moved on.
pub fn mergePull(context: *Context) OpError!Value {
    const url = try github.repositoryUrl(context);
    const number = try github.required(context, "number");
    const sha = try context.required("sha");
    if (sha.len != 40) return context.badArgument("sha", "must be the 40 digits of a commit");
    for (sha) |byte| {
        if (!std.ascii.isHex(byte)) return context.badArgument("sha", "must be the 40 digits of a commit");
    }
    var body: Record = .{ .context = context };
    try body.given(&.{ "sha", "commit_title", "commit_message" });
    if (try github.choice(context, "merge_method", &.{ "merge", "squash", "rebase" })) |method|
        try body.text("merge_method", method);
    const merged = try context.ask("PUT", try github.concat(context, &.{ url, "/pulls/", number, "/merge" }), try connector.json(context.gpa, body.done()));
    if (!github.isTrue(merged, "merged")) return github.unexpected(context, "a merge");
    var out: Record = .{ .context = context };
    try out.copy(merged, &.{ "sha", "merged", "message" });
    return out.done();
}

fn isOpen(pull: Value) bool {
    return std.mem.eql(u8, string(pull, "state") orelse "", "open");
}

fn state(pull: Value) []const u8 {
    if (github.isTrue(pull, "merged")) return "merged";
    if (github.isTrue(pull, "draft") and isOpen(pull)) return "draft";
    return string(pull, "state") orelse "unknown";
}

fn conflicts(pull: Value) []const u8 {
    if (!isOpen(pull)) return "none";
    const mergeable = member(pull, "mergeable") orelse .null;
    if (mergeable != .bool) return "GitHub has not worked it out yet";
    return if (mergeable.bool) "none" else "conflicts with the base branch";
}

fn summary(context: *Context, pull: Value) OpError![]const u8 {
    var out: Buffer = .init(context.gpa);
    try github.appendCount(&out, github.count(pull, "commits"), "commit", "commits");
    try out.appendSlice(", ");
    try github.appendCount(&out, github.count(pull, "changed_files"), "file", "files");
    try appendLines(&out, pull);
    return out.items;
}

fn appendLines(out: *Buffer, counted: Value) OpError!void {
    for ([_][]const u8{ ", +", github.digitsOf(counted, "additions"), " -", github.digitsOf(counted, "deletions") }) |piece|
        try out.appendSlice(piece);
}

fn filesText(context: *Context, files: []const Value, all: u64) OpError![]const u8 {
    var out: Buffer = .init(context.gpa);
    for (files) |each| {
        try out.appendSlice(string(each, "status") orelse "changed");
        try out.append(' ');
        if (string(each, "previous_filename")) |before| {
            try github.appendLine(&out, before);
            try out.appendSlice(" -> ");
        }
        try github.appendLine(&out, string(each, "filename") orelse "?");
        try appendLines(&out, each);
        try out.append('\n');
    }
    if (all > files.len) {
        try github.appendCount(&out, all - files.len, "more file is", "more files are");
        try out.appendSlice(" not shown: GitHub lists no more.\n");
    }
    return if (out.items.len == 0) "none" else std.mem.trimEnd(u8, out.items, "\n");
}

/// The difference of every file, until a screen could not show it; what is left out is counted.
fn diffText(context: *Context, files: []const Value) OpError![]const u8 {
    var out: Buffer = .init(context.gpa);
    var lines: usize = 0;
    for (files, 0..) |each, at| {
        const patch = string(each, "patch") orelse "(no lines: binary, too large, or only renamed)";
        const needed = std.mem.count(u8, patch, "\n") + 4;
        if (out.items.len + patch.len > most_diff_bytes or lines + needed > most_diff_lines) {
            try out.appendSlice("diff of ");
            try github.appendCount(&out, files.len - at, "more file is", "more files are");
            try out.appendSlice(" not shown here: too large. Read it at GitHub.\n");
            break;
        }
        lines += needed;
        const name = string(each, "filename") orelse "?";
        for ([_][]const u8{ "--- a/", "+++ b/" }, [_][]const u8{ string(each, "previous_filename") orelse name, name }) |mark, path| {
            try out.appendSlice(mark);
            try github.appendLine(&out, path);
            try out.append('\n');
        }
        try out.appendSlice(patch);
        try out.append('\n');
    }
    return if (out.items.len == 0) "none" else std.mem.trimEnd(u8, out.items, "\n");
}

/// What tests and reviews by programs said about a commit, each as one line.
fn checksText(context: *Context, url: []const u8, sha: []const u8) OpError![]const u8 {
    var out: Buffer = .init(context.gpa);
    const commit = try github.concat(context, &.{ url, "/commits/", sha });
    // A fine-grained token cannot read check runs of a private repository, but the workflows that make most.
    const runs = try appendChecks(context, &out, try github.concat(context, &.{ commit, "/check-runs?filter=latest&" }), "check_runs", "name");
    if (runs != 200) {
        const workflows = try appendChecks(context, &out, try github.concat(context, &.{ url, "/actions/runs?head_sha=", sha, "&" }), "workflow_runs", "name");
        try out.appendSlice(if (workflows == 200)
            "Checks other than GitHub Actions cannot be read with this account.\n"
        else
            "Check runs cannot be read with this account.\n");
    }
    const statuses = try appendChecks(context, &out, try github.concat(context, &.{ commit, "/status?" }), "statuses", "context");
    if (statuses != 200) try out.appendSlice("Commit statuses cannot be read with this account.\n");
    return if (out.items.len == 0) "none" else std.mem.trimEnd(u8, out.items, "\n");
}

/// Adds the checks of one of GitHub's lists (its URL up to the page), and returns its status: 403 and 404 where the account may
/// not read it.
fn appendChecks(context: *Context, out: *Buffer, url: []const u8, key: []const u8, label: []const u8) OpError!u16 {
    var read: usize = 0;
    var page: usize = 1;
    while (read < most_checks) : (page += 1) {
        const asked = std.fmt.allocPrint(context.gpa, "{s}per_page=100&page={d}", .{ url, page }) catch return error.OutOfMemory;
        const response = try context.send("GET", asked, null);
        if (response.status == 403 or response.status == 404) return response.status;
        const answer = try context.parse(response, .object);
        const found = member(answer, key) orelse return github.unexpected(context, "a list of checks");
        if (found != .array) return github.unexpected(context, "a list of checks");
        for (found.array.items) |each| {
            const end = string(each, "conclusion") orelse string(each, "state") orelse string(each, "status") orelse "unknown";
            try out.appendSlice(end);
            try out.appendSlice(": ");
            try github.appendLine(out, string(each, label) orelse "?");
            if (string(member(each, "app") orelse .null, "name")) |app| {
                try out.appendSlice(" (");
                try github.appendLine(out, app);
                try out.append(')');
            }
            try out.append('\n');
        }
        read += found.array.items.len;
        if (found.array.items.len == 0 or read >= github.count(answer, "total_count")) return 200;
    }
    try out.appendSlice("Further checks are not shown.\n");
    return 200;
}
