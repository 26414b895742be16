//! Answers the client's requests: which tools there are, and calls of them.

use super::child::{self, Failure};
use super::progress::Progress;
use super::request::Request;
use super::tool::Tool;
use super::tools::TOOLS;
use crate::Remedies;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::sync::Arc;
use tokio::sync::Mutex;

const INSTRUCTIONS: &str = "Finds why a Linux program is slow for reasons of memory, locks and waits, predicts what a \
    remedy would gain, and measures the gain. Begin with `diagnose` on a command. Each finding has a remedy; \
    `rehearse` predicts the remedy's gain over its parameter, and `verify` with the finding's `verify` arguments \
    measures the gain by interleaved runs. `gate` compares two builds by counted figures. `report` shows where the \
    misses of a run come from. `doctor` shows what works on this machine. Commands are arrays of words; no shell \
    reads them. Predicted and modelled figures are no measured ones: verify before you claim a gain.";

/// The server's state.
pub struct Server {
    remedies: Remedies,
    /// Held by the call that runs.
    calls: Arc<Mutex<()>>,
}

impl Server {
    /// A server that offers these remedies.
    pub fn new(remedies: Remedies) -> Self {
        Server { remedies, calls: Arc::default() }
    }

    /// The lock that a call holds until its child has ended.
    pub fn calls(&self) -> Arc<Mutex<()>> {
        self.calls.clone()
    }

    async fn call(&self, request: Request, context: &RequestContext<RoleServer>) -> Result<CallToolResult, Failure> {
        let mut progress = Progress::of(context);
        let _turn = tokio::select! {
            turn = self.calls.lock() => turn,
            () = context.ct.cancelled() => return Err(Failure::Cancelled),
        };
        let printed = child::run(&request, context.ct.cancelled(), &mut progress).await?;
        answered(&request, &printed)
    }
}

/// The answer, as text and as an object.
fn answered(request: &Request, printed: &str) -> Result<CallToolResult, Failure> {
    let (text, object) = request.answer(printed).map_err(Failure::Verb)?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(object);
    Ok(result)
}

fn refused(why: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("nearmiss", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let definition = |tool: &Tool| tool.definition(self.remedies);
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(definition).collect()))
    }

    async fn call_tool(
        &self,
        called: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == called.name) else {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            let why = format!("no tool `{}`; there are {}", called.name, names.join(", "));
            return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, why, None));
        };
        let request = match (tool.request)(called.arguments.unwrap_or_default(), self.remedies) {
            Ok(request) => request,
            Err(why) => return Ok(refused(format!("{}: {why}", tool.name)).into()),
        };
        let result = self.call(request, &context).await;
        Ok(result.unwrap_or_else(|failure| refused(failure.line())).into())
    }
}
