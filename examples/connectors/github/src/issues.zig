//! Issues and their comments; a pull request is an issue too.

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

const shown_comments = 10;
const shown_issues = 10;
const comment_page = 20;

pub fn listIssues(context: *Context) OpError!Value {
    const url = try github.repositoryUrl(context);
    const state = try github.choice(context, "state", &.{ "open", "closed", "all" }) orelse "open";
    const size = try context.integer("per_page", 1, 100) orelse "30";
    const page = try context.integer("page", 1, 100_000) orelse "1";
    const labels = if (try context.text("labels")) |given| try context.escape(given) else "";
    const asked = try github.concat(context, &.{
        url,      "/issues?state=", state,  "&per_page=",                           size,
        "&page=", page,             if (labels.len > 0) "&labels=" else "", labels,
    });
    const found = try context.parse(try context.send("GET", asked, null), .list);
    var issues: std.json.Array = .init(context.gpa);
    for (found.array.items) |each| {
        var brief: Record = .{ .context = context };
        try brief.copy(each, &.{ "number", "title", "state", "comments", "updated_at" });
        try brief.put("is_pull_request", .{ .bool = member(each, "pull_request") != null });
        try brief.text("author", github.login(each, "user"));
        try brief.text("labels", try labelNames(context, each));
        try issues.append(brief.done());
    }
    var out: Record = .{ .context = context };
    try out.put("issues", .{ .array = issues });
    const wanted = std.fmt.parseInt(usize, size, 10) catch 0;
    if (found.array.items.len == wanted) {
        const at = std.fmt.parseInt(i64, page, 10) catch 0;
        try out.put("next_page", .{ .integer = at + 1 });
    }
    return out.done();
}

/// An issue with its last comments. With `comment_id` that comment as well, and those before it.
pub fn getIssue(context: *Context) OpError!Value {
    const url = try github.repositoryUrl(context);
    const number = try github.required(context, "number");
    const comment_id = try context.integer("comment_id", 1, 1 << 53);
    const place = try github.repository(context, url);
    const issue_url = try github.concat(context, &.{ url, "/issues/", number });
    const issue = try context.ask("GET", issue_url, null);

    var out: Record = .{ .context = context };
    try out.text("repository", place.line);
    try out.copy(issue, &.{ "number", "title", "state", "state_reason", "locked", "body", "html_url" });
    try out.text("kind", if (member(issue, "pull_request") != null) "pull request" else "issue");
    try out.text("author", github.login(issue, "user"));
    try out.text("labels", try labelNames(context, issue));
    const all = github.count(issue, "comments");
    try out.text("last_comments", try lastComments(context, issue_url, all, comment_id));
    if (comment_id) |id| {
        const comment = try context.ask("GET", try github.concat(context, &.{ url, "/issues/comments/", id }), null);
        try ofIssue(context, comment, number);
        try out.put("comment", comment);
    }
    return out.done();
}

pub fn getComment(context: *Context) OpError!Value {
    const url = try github.repositoryUrl(context);
    const id = try github.required(context, "comment_id");
    const place = try github.repository(context, url);
    const comment = try context.ask("GET", try github.concat(context, &.{ url, "/issues/comments/", id }), null);
    const issue_url = string(comment, "issue_url") orelse return github.unexpected(context, "a comment");
    const slash = std.mem.lastIndexOfScalar(u8, issue_url, '/') orelse return github.unexpected(context, "a comment");
    const number = try context.escape(issue_url[slash + 1 ..]);
    const issue = try context.ask("GET", try github.concat(context, &.{ url, "/issues/", number }), null);
    var out: Record = .{ .context = context };
    try out.text("repository", place.line);
    try out.copy(comment, &.{ "id", "body", "created_at", "html_url" });
    try out.text("author", github.login(comment, "user"));
    var about: Record = .{ .context = context };
    try about.copy(issue, &.{ "number", "title", "state" });
    try out.put("issue", about.done());
    return out.done();
}

/// A repository and its newest open issues. With `issue` that issue as well, and the others.
pub fn getRepository(context: *Context) OpError!Value {
    const url = try github.repositoryUrl(context);
    const number = try context.integer("issue", 1, 1 << 53);
    const place = try github.repository(context, url);
    const newest = try context.parse(
        try context.send("GET", try github.concat(context, &.{ url, "/issues?state=open&per_page=100" }), null),
        .list,
    );
    var titles: Buffer = .init(context.gpa);
    var taken: usize = 0;
    for (newest.array.items) |each| {
        const own = github.digitsOf(each, "number");
        if (member(each, "pull_request") != null or (number != null and std.mem.eql(u8, own, number.?))) continue;
        if (taken == shown_issues) break;
        taken += 1;
        for ([_][]const u8{ "#", own, " " }) |piece| try titles.appendSlice(piece);
        try github.appendLine(&titles, string(each, "title") orelse "");
        try titles.append('\n');
    }
    var out: Record = .{ .context = context };
    try out.text("repository", place.line);
    try out.copy(place.json, &.{ "description", "default_branch", "html_url" });
    try out.text("newest_issues", if (taken == 0) "none" else std.mem.trimEnd(u8, titles.items, "\n"));
    if (number) |digits| {
        const issue = try context.ask("GET", try github.concat(context, &.{ url, "/issues/", digits }), null);
        var about: Record = .{ .context = context };
        try about.copy(issue, &.{ "number", "title", "body", "state", "html_url" });
        try about.text("labels", try labelNames(context, issue));
        try out.put("issue", about.done());
    }
    return out.done();
}

pub fn createIssue(context: *Context) OpError!Value {
    const url = try github.repositoryUrl(context);
    _ = try context.required("title");
    var body: Record = .{ .context = context };
    try body.given(&.{ "title", "body" });
    if (member(context.args, "labels")) |labels| switch (labels) {
        .null => {},
        .array => |names| {
            for (names.items) |name| if (name != .string) return context.badArgument("labels", "must be a list of strings");
            try body.put("labels", labels);
        },
        else => return context.badArgument("labels", "must be a list of strings"),
    };
    const made = try context.ask("POST", try github.concat(context, &.{ url, "/issues" }), try connector.json(context.gpa, body.done()));
    return picked(context, made, &.{ "id", "number", "title", "html_url" });
}

pub fn updateIssue(context: *Context) OpError!Value {
    const url = try github.repositoryUrl(context);
    const number = try github.required(context, "number");
    var body: Record = .{ .context = context };
    try body.given(&.{ "title", "body" });
    if (try github.choice(context, "state", &.{ "open", "closed" })) |state| try body.text("state", state);
    if (try github.choice(context, "state_reason", &.{ "completed", "not_planned", "reopened", "duplicate" })) |reason|
        try body.text("state_reason", reason);
    if (body.object.count() == 0)
        return context.fail("connector_runtime_error", &.{"nothing to change: give title, body or state"});
    const changed = try context.ask("PATCH", try github.concat(context, &.{ url, "/issues/", number }), try connector.json(context.gpa, body.done()));
    return picked(context, changed, &.{ "id", "number", "title", "state", "html_url" });
}

pub fn addComment(context: *Context) OpError!Value {
    const url = try github.repositoryUrl(context);
    const number = try github.required(context, "number");
    var body: Record = .{ .context = context };
    try body.text("body", try context.required("body"));
    const made = try context.ask("POST", try github.concat(context, &.{ url, "/issues/", number, "/comments" }), try connector.json(context.gpa, body.done()));
    return picked(context, made, &.{ "id", "html_url" });
}

pub fn updateComment(context: *Context) OpError!Value {
    const url = try github.repositoryUrl(context);
    const id = try github.required(context, "comment_id");
    var body: Record = .{ .context = context };
    try body.text("body", try context.required("body"));
    const changed = try context.ask("PATCH", try github.concat(context, &.{ url, "/issues/comments/", id }), try connector.json(context.gpa, body.done()));
    return picked(context, changed, &.{ "id", "html_url" });
}

fn picked(context: *Context, from: Value, keys: []const []const u8) OpError!Value {
    var out: Record = .{ .context = context };
    try out.copy(from, keys);
    return out.done();
}

/// A comment of another issue would be shown beside the wrong text.
fn ofIssue(context: *Context, comment: Value, number: []const u8) OpError!void {
    const url = string(comment, "issue_url") orelse "";
    const end = try github.concat(context, &.{ "/issues/", number });
    if (!std.mem.endsWith(u8, url, end))
        return context.badArgument("comment_id", "is of another issue");
}

/// The last comments, oldest first, without the one that is `except`, which `all` counts too.
fn lastComments(context: *Context, issue_url: []const u8, all: u64, except: ?[]const u8) OpError![]const u8 {
    const others = all - @min(all, @as(u64, if (except == null) 0 else 1));
    if (others == 0) return "none";
    var kept: std.array_list.Managed(Value) = .init(context.gpa);
    var page = (all + comment_page - 1) / comment_page;
    while (page > 0 and kept.items.len < shown_comments) : (page -= 1) {
        const url = std.fmt.allocPrint(context.gpa, "{s}/comments?per_page={d}&page={d}", .{ issue_url, comment_page, page }) catch return error.OutOfMemory;
        const found = try context.parse(try context.send("GET", url, null), .list);
        var at = found.array.items.len;
        while (at > 0 and kept.items.len < shown_comments) {
            at -= 1;
            const id = github.digitsOf(found.array.items[at], "id");
            if (except == null or !std.mem.eql(u8, id, except.?)) try kept.append(found.array.items[at]);
        }
    }
    var out: Buffer = .init(context.gpa);
    if (others > kept.items.len) {
        try github.appendCount(&out, others - kept.items.len, "earlier comment is", "earlier comments are");
        try out.appendSlice(" not shown.\n");
    }
    std.mem.reverse(Value, kept.items);
    for (kept.items) |each| {
        const created = string(each, "created_at") orelse "";
        const edited = !std.mem.eql(u8, created, string(each, "updated_at") orelse created);
        for ([_][]const u8{ github.login(each, "user"), ", ", created, if (edited) ", edited" else "", ":\n" }) |piece|
            try out.appendSlice(piece);
        try github.appendQuoted(&out, string(each, "body") orelse "");
    }
    return std.mem.trimEnd(u8, out.items, "\n");
}

fn labelNames(context: *Context, issue: Value) OpError![]const u8 {
    var out: Buffer = .init(context.gpa);
    const labels = member(issue, "labels") orelse return "";
    if (labels != .array) return "";
    for (labels.array.items) |each| {
        const name = if (each == .string) each.string else string(each, "name") orelse continue;
        if (out.items.len > 0) try out.appendSlice(", ");
        try github.appendLine(&out, name);
    }
    return out.items;
}
